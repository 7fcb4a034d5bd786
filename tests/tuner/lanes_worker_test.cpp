// Protects: a run on two cards with real worker processes, of which one can't be started any more:
// its card leaves, every problem is tuned, and nothing recorded is lost.

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "tests/catalog.hpp"
#include "tests/temporary_folder.hpp"
#include "tuner/evaluate/worker_evaluator.hpp"
#include "tuner/tuning/lanes.hpp"

namespace greta::test::lanes_worker_test {
namespace {

/// A worker's evaluator under another index, so that two on one CPU are two cards.
class Card final : public Evaluator {
 public:
  Card(int index, const std::vector<std::string>& command, const EvaluatorOptions& options)
      : worker_(command, options), info_(worker_.device()) {
    info_.index = index;
  }
  const DeviceInfo& device() const override { return info_; }
  const Catalog& catalog() const override { return worker_.catalog(); }
  void prepare(const Problem& problem, const std::vector<Config>& upcoming) override {
    worker_.prepare(problem, upcoming);
  }
  int lookahead() const override { return worker_.lookahead(); }
  Trial evaluate(const Problem& problem, const Config& config, const TrialLimits& limits) override {
    if (++evaluated_ == kill_at_) {
      std::ofstream(flag_).put('x');
      kill(worker_.worker_pid(), SIGKILL);
    }
    return worker_.evaluate(problem, config, limits);
  }
  Trial verify(const Problem& problem, const Config& config, std::uint64_t seed,
               const TrialLimits& limits) override {
    return worker_.verify(problem, config, seed, limits);
  }
  Rounds time_rounds(const Problem& problem, const std::vector<Config>& configs, int rounds,
                     double seconds, std::uint64_t seed, const TrialLimits& limits) override {
    return worker_.time_rounds(problem, configs, rounds, seconds, seed, limits);
  }
  void renew() override { worker_.renew(); }
  std::vector<Trial> take_lost() override { return worker_.take_lost(); }
  std::vector<Ceiling> measure_ceilings(const std::vector<std::string>&) override { return {}; }

  int kill_at_ = 0;  ///< number of the trial at which its worker is killed for good
  std::filesystem::path flag_;

 private:
  WorkerEvaluator worker_;
  DeviceInfo info_;
  int evaluated_ = 0;
};

class Lost final : public TunerObserver {
 public:
  void on_card_lost(const std::string& why) override { lost_.push_back(why); }
  std::vector<std::string> lost_;
};

TEST(LanesOfWorkers, ACardWhoseWorkerDiesForGoodLeavesTheRun) {
  const TemporaryFolder folder;
  const std::string flag = folder / "dead";
  EvaluatorOptions evaluator;
  evaluator.device = "lavapipe";
  evaluator.cache_directory = folder / "cache";
  evaluator.flush_bytes = 1 << 20;
  const std::string script =
      "if [ -e " + flag + " ]; then kill -KILL $$; fi; exec " + GRETA_TUNE + " worker";
  Card first(0, {GRETA_TUNE, "worker"}, evaluator);
  Card second(1, {"/bin/sh", "-c", script}, evaluator);
  second.kill_at_ = 3;
  second.flag_ = flag;

  TunedDb db = TunedDb::open(folder / "tuned.db", TunedDb::Mode::read_write);
  TunerOptions options;
  options.budget = Budget::trials_of(4);
  options.strategy = "random";
  options.shipped.clear();
  std::vector<TuningTask> tasks;
  for (int i = 1; i <= 4; ++i) {
    tasks.push_back({.problem = Problem::parse("softmax dtype=f32 out=f32 rows=4 cols=" +
                                               std::to_string(16 * i))
                                    .value()});
  }
  Lost lost;
  const std::atomic<bool> stop = false;
  Lanes lanes({&first, &second}, tasks.size(),
              {options, 1, "2026-01-01T00:00:00Z", db, lost, stop});
  std::size_t won = 0;
  ASSERT_TRUE(
      lanes.run(tasks, [&](const TuningTask&, const TaskResult& result) { won += result.won(); }));
  EXPECT_EQ(won, tasks.size());
  ASSERT_EQ(lost.lost_.size(), 1U);
  EXPECT_EQ(lost.lost_[0].find("vulkan:1: opening the device: "), 0U) << lost.lost_[0];
  EXPECT_NE(lost.lost_[0].find("killed by signal 9"), std::string::npos) << lost.lost_[0];
  // The session that it ended has what was recorded before, and what was lost.
  bool recorded = false;
  for (const auto& session : db.sessions()) {
    if (session.outcome != "failed") continue;
    const auto trials = db.trials(session.id);
    recorded = std::any_of(trials.begin(), trials.end(),
                           [](const Trial& trial) { return trial.failure == Status::crash; });
  }
  EXPECT_TRUE(recorded);
  EXPECT_TRUE(db.check().empty());
}

}  // namespace
}  // namespace greta::test::lanes_worker_test
