// Measures lookups: greta_lookup_benchmark, with Google Benchmark's options. Among 10,000 winners
// of one device it times opening the user's database and a shipped one, finding a problem again
// (`hot`; p50 and p99 of single calls, minus the time of reading the clock), and finding it for the
// first time (`cold`).

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>

#include "db/lookup/lookup.hpp"
#include "db/tuned_db.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int winners = 10'000;

DeviceInfo device() {
  DeviceInfo info = architecture_info("sm_90").value();
  info.card.uuid = "aa";
  return info;
}

Problem problem(int number, std::int64_t k) {
  return {"gemm",
          DType::f16,
          DType::f16,
          {{"layout", "nt"}},
          {{"m", 16 * (1 + number % 100)}, {"n", 64 * (1 + number / 100)}, {"k", k}}};
}

Contents contents() {
  Contents all;
  all.devices = {{device(), "2026-11-20T12:00:00Z", "2026-11-20T12:00:00Z"}};
  const auto& gemm = built_in("gemm");
  for (int i = 0; i < winners; ++i) {
    StoredWinner one;
    one.problem = problem(i, 4096);
    one.device = all.devices.front().info;
    one.provenance = {"0.1.0", "e8f14ebb87a13c8781f782524a10754a", "driver", "compiler",
                      "2026-11-20T12:00:00Z"};
    one.winner.config = gemm.default_config(one.problem, one.device);
    one.winner.measurement.samples_us.assign(22, 1.0 / 3);
    one.winner.default_samples_us.assign(22, 1.0 / 3);
    one.winner.measurement.median_us = 10;
    one.regret = Regret{"m=4096 n=4096 k=4096", 1.01, Regret::Source::trials};
    all.results.push_back(std::move(one));
  }
  return all;
}

/// The user's database and shipped ones, created once and removed at the end: one of this device
/// and a hundred of other architectures.
class Files {
 public:
  Files() {
    const auto all = contents();
    TunedDb::open(own(), TunedDb::Mode::read_write).write(all);
    const auto model = shipped() / device().architecture / "model.db";
    fs::create_directories(model.parent_path());
    TunedDb::ship(all, model);
    for (int i = 0; i < 100; ++i) {
      const auto other = shipped() / fmt::format("other_{}", i) / "model.db";
      fs::create_directories(other.parent_path());
      fs::copy_file(model, other);
    }
  }
  fs::path own() const { return folder_ / "own.db"; }
  fs::path shipped() const { return folder_ / "tuned"; }

 private:
  test::TemporaryFolder folder_;
};

const Files& files() {
  static const Files both;
  return both;
}

void open(benchmark::State& state) {
  LookupFiles which = LookupFiles::none();
  if (state.range(0) == 0) {
    which.own = files().own();
  } else {
    which.shipped = files().shipped();
  }
  const auto info = device();
  for (auto _ : state) benchmark::DoNotOptimize(Lookup::open(info, which));
}
BENCHMARK(open)->Arg(0)->Arg(1)->ArgName("shipped")->Unit(benchmark::kMillisecond);

/// Times lookups of `problems` in random order, after all were found once.
void time_hot(benchmark::State& state, const std::vector<Problem>& problems) {
  LookupFiles which = LookupFiles::none();
  which.shipped = files().shipped();
  const auto lookup = Lookup::open(device(), which);
  for (const auto& one : problems) benchmark::DoNotOptimize(&lookup.find(one));
  std::mt19937_64 random(1);
  std::vector<double> clock_ns(10'000), ns;
  for (double& one : clock_ns) {
    const auto start = Clock::now();
    one = std::chrono::duration<double, std::nano>(Clock::now() - start).count();
  }
  std::nth_element(clock_ns.begin(), clock_ns.begin() + 5'000, clock_ns.end());
  for (auto _ : state) {
    const Problem one = problems[random() % problems.size()];  // newly created, like a caller's
    const auto start = Clock::now();
    benchmark::DoNotOptimize(&lookup.find(one));
    const auto end = Clock::now();
    ns.push_back(std::chrono::duration<double, std::nano>(end - start).count() - clock_ns[5'000]);
  }
  std::sort(ns.begin(), ns.end());
  state.counters["p50_ns"] = ns[ns.size() / 2];
  state.counters["p99_ns"] = ns[ns.size() * 99 / 100];
}

void hot(benchmark::State& state) {
  std::vector<Problem> problems;
  for (int i = 0; i < winners; ++i) problems.push_back(problem(i, 4096));
  time_hot(state, problems);
}
BENCHMARK(hot)->Iterations(1'000'000);

void hot_unrecorded(benchmark::State& state) {
  std::vector<Problem> problems;
  for (int i = 0; i < 100; ++i) problems.push_back(problem(i, 4104));
  time_hot(state, problems);
}
BENCHMARK(hot_unrecorded)->Iterations(1'000'000);

void cold(benchmark::State& state) {
  LookupFiles which = LookupFiles::none();
  which.shipped = files().shipped();
  const auto lookup = Lookup::open(device(), which);
  int number = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(&lookup.find(problem(number++, state.range(0))));
  }
}
BENCHMARK(cold)->Arg(4096)->Arg(4104)->ArgName("k")->Iterations(1'000)->Unit(
    benchmark::kMicrosecond);

}  // namespace
}  // namespace greta::test

BENCHMARK_MAIN();
