// Measures a database of many trials: greta_trials_benchmark [TRIALS] [FILE]. Records that many
// trials (a million by default) in sessions of 500, each of its own problem, like greta-tune: every
// trial is one committed transaction. Then prints the size of the file, and the times of opening it
// and of what a tune asks it.

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "db/lookup/lookup.hpp"
#include "db/tuned_db.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test {
namespace {

namespace fs = std::filesystem;

constexpr int trials_of_a_session = 500;

DeviceInfo device() {
  DeviceInfo info = architecture_info("sm_90").value();
  info.name = "NVIDIA H200";
  info.driver = "570.0";
  info.compiler = "NVRTC 12.8";
  info.card.uuid = "aa";
  return info;
}

Problem problem(int number) {
  return {"gemm",
          DType::f16,
          DType::f16,
          {{"layout", "nt"}},
          {{"m", 16 * (1 + number % 100)}, {"n", 64 * (1 + number / 100)}, {"k", 4096}}};
}

/// A trial of the usual size: ten samples and the figures of one kernel.
Trial trial(const Space& space, const Problem& problem, std::uint64_t number) {
  Trial one;
  one.config = space.at(number * 7919 % space.count());
  one.problem_key = problem.key();
  one.verdict = {true, 1.5e-5, 4.19e-5, "full; 3 small problems with the same kernels", ""};
  for (int i = 0; i < 10; ++i)
    one.measurement.samples_us.push_back(101.376 + static_cast<double>((number + i) % 97) / 7);
  one.measurement.median_us = one.measurement.samples_us[5];
  one.measurement.clocks = "SM 1980 MHz, memory 3201 MHz";
  one.content_keys = "4d3f2f8ac3e2b1907c6d5e4f3a2b1c0d";
  one.kernels = {{"gemm/tiled", {128, 0, 0, 32768, 0, 0, 0, 5120, 0, 0, 0, 0}}};
  one.card = "aa";
  one.phase = TrialPhase::search;
  one.asks = static_cast<std::int64_t>(number % trials_of_a_session) + 1;
  return one;
}

Winner winner(const Config& config) {
  Winner one;
  one.config = config;
  one.measurement.samples_us.assign(22, 1.0 / 3);
  one.default_samples_us.assign(22, 1.0 / 3);
  one.measurement.median_us = 10;
  one.rounds = 22;
  one.verdict.passed = true;
  return one;
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void row(const std::string& what, double seconds) {
  const auto text =
      seconds >= 1 ? fmt::format("{:.1f} s", seconds) : fmt::format("{:.2f} ms", seconds * 1e3);
  std::fputs(fmt::format("{:<58}{:>12}\n", what, text).c_str(), stdout);
  std::fflush(stdout);
}

void record(const fs::path& file, int trials) {
  const Operation& gemm = built_in("gemm");
  SessionRecord session;
  session.device = device();
  session.provenance = {"0.1.0", gemm.key(), device().driver, device().compiler,
                        "2026-11-23T12:00:00Z"};
  session.strategy = "local";
  session.budget = "500";
  const Space space =
      gemm.space(problem(99), session.device);  // the same for all, which saves time
  TunedDb db = TunedDb::open(file, TunedDb::Mode::read_write);
  double longest = 0, total = 0;
  for (int first = 0; first < trials; first += trials_of_a_session) {
    session.problem = problem(first / trials_of_a_session);
    const auto id = db.begin_session(session);
    for (int i = first; i < std::min(trials, first + trials_of_a_session); ++i) {
      const Trial one = trial(space, session.problem, static_cast<std::uint64_t>(i));
      const double seconds = seconds_of([&] { db.add_trial(id, one); });
      longest = std::max(longest, seconds);
      total += seconds;
    }
    db.set_winner(id, winner(space.at(0)));
    db.end_session(id, "done");
  }
  row(fmt::format("record {} trials ({:.0f} µs each)", trials, total * 1e6 / trials), total);
  row("read back what was recorded", seconds_of([&] { db.confirm(); }));
  row("longest call that records a trial", longest);
}

/// A greta-tune of one problem in a database that has many.
void tune_once(const fs::path& file) {
  TunedDb db = TunedDb::open(file, TunedDb::Mode::read_write);
  SessionRecord session;
  session.device = device();
  session.problem = problem(1);
  const auto id = db.begin_session(session);
  const Space space = catalog().at("gemm").space(session.problem, session.device);
  for (int i = 0; i < 100; ++i) db.add_trial(id, trial(space, session.problem, 7U * unsigned(i)));
  db.end_session(id, "done");
  row("read back a hundred trials, when a tune ends", seconds_of([&] { db.confirm(); }));
}

void look_up(const fs::path& file) {
  using Mode = TunedDb::Mode;
  row("open for writing", seconds_of([&] { TunedDb::open(file, Mode::read_write); }));
  row("open for reading", seconds_of([&] { TunedDb::open(file, Mode::read_only); }));
  row("open a look-up and answer the first problem", seconds_of([&] {
        const auto lookup = Lookup::open(device(), {file, {}}, {});
        static_cast<void>(lookup.find(problem(17)));
      }));
  const TunedDb db = TunedDb::open(file, Mode::read_only);
  const std::string fingerprint = device().fingerprint(), key = problem(17).key();
  row("the winners of a problem", seconds_of([&] { db.find_winners(fingerprint, key, true); }));
  row("the fastest configurations of a problem",
      seconds_of([&] { db.fastest_configs(fingerprint, key, true, 4); }));
  row("all trials of a session", seconds_of([&] { db.trials(17); }));
  row("all sessions, with their numbers of trials", seconds_of([&] { db.sessions(); }));
  row("counts", seconds_of([&] { db.counts(); }));
  row("damaged rows but trials, when greta-tune starts",
      seconds_of([&] { db.damaged_but_trials(); }));
  row("damaged trials of a problem, when it is tuned",
      seconds_of([&] { db.damaged_trials(problem(1).key()); }));
  row("damaged rows, by the checksums of all", seconds_of([&] { db.damaged(); }));
}

}  // namespace
}  // namespace greta::test

int main(int argc, char** argv) {
  using namespace greta::test;
  const int trials = argc > 1 ? std::atoi(argv[1]) : 1'000'000;
  const greta::test::TemporaryFolder folder;
  const fs::path file = argc > 2 ? fs::path(argv[2]) : folder / "trials.db";
  record(file, trials);
  std::fputs(fmt::format("{:<58}{:>9.1f} MB\n", "size of the file",
                         static_cast<double>(fs::file_size(file)) / 1e6)
                 .c_str(),
             stdout);
  tune_once(file);
  look_up(file);
}
