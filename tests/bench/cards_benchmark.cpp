// Measures the process that tunes on several cards, without cards: greta_cards_benchmark [MS]
// [PROBLEMS] [TRIALS] [LOOKAHEAD]. With a LOOKAHEAD of 1, a single card waits for this process
// between two trials. Simulated cards take MS milliseconds for a trial (40, the rate of an H200
// with a cold cache) and as long for each interleaved round. Prints, for 1, 2, 4 and 8 cards,
// trials a second and CPU time of this process per trial: of strategies, certification and the
// database, since compiling and references are the workers'.

#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <list>
#include <thread>

#include "tests/temporary_folder.hpp"
#include "tests/tuner/fake_evaluator.hpp"
#include "tuner/tuning/lanes.hpp"

namespace greta::test {
namespace {

struct Load {
  int trial_ms = 40, problems = 24, trials = 60, lookahead = 4;
};

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Counts trials, and ends the program if a card failed.
class Count final : public TunerObserver {
 public:
  void on_trial(const SessionResult&, const Budget&) override { ++trials_; }
  int trials_ = 0;
};

/// Tunes the problems on this number of cards. Returns trials a second.
double run(std::size_t count, const Load& load, double alone) {
  const TemporaryFolder folder;
  TunedDb db = TunedDb::open(folder / "tuned.db", TunedDb::Mode::read_write);
  std::list<FakeEvaluator> cards(count);
  std::vector<Evaluator*> evaluators;
  for (FakeEvaluator& card : cards) {
    card.info_.index = static_cast<int>(evaluators.size());
    card.throws_ = [&load] {
      std::this_thread::sleep_for(std::chrono::milliseconds(load.trial_ms));
    };
    card.lookahead_ = load.lookahead;
    evaluators.push_back(&card);
  }
  TunerOptions options;
  options.catalog = test::catalog();
  options.budget = Budget::trials_of(static_cast<std::uint64_t>(load.trials));
  options.shipped.clear();
  std::vector<TuningTask> tasks;
  for (int i = 0; i < load.problems; ++i) {
    tasks.push_back(
        {.problem =
             Problem::parse(fmt::format("gemm dtype=f32 out=f32 m={} n=512 k=512", 256 + 16 * i))
                 .value()});
  }
  Count counted;
  const std::atomic<bool> stop = false;
  Lanes lanes(evaluators, tasks.size(), {options, 1, "2026-01-01T00:00:00Z", db, counted, stop});
  const double cpu = cpu_seconds();
  const auto begun = std::chrono::steady_clock::now();
  lanes.run(tasks, [](const TuningTask&, const TaskResult&) {}).value();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begun;
  const double rate = counted.trials_ / seconds.count();
  fmt::print(
      "{} cards: {:.1f} trials a second, {:.2f} times one card, {:.2f} ms of CPU per trial\n",
      count, rate, alone > 0 ? rate / alone : 1.0, 1e3 * (cpu_seconds() - cpu) / counted.trials_);
  std::fflush(stdout);
  return rate;
}

}  // namespace
}  // namespace greta::test

int main(int count, char** arguments) {
  greta::test::Load load;
  if (count > 1) load.trial_ms = std::atoi(arguments[1]);
  if (count > 2) load.problems = std::atoi(arguments[2]);
  if (count > 3) load.trials = std::atoi(arguments[3]);
  if (count > 4) load.lookahead = std::atoi(arguments[4]);
  double alone = 0;
  for (const std::size_t cards : {1U, 2U, 4U, 8U}) {
    const double rate = greta::test::run(cards, load, alone);
    if (cards == 1) alone = rate;
  }
}
