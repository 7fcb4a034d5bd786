// Measures asking: greta_search_benchmark, with Google Benchmark's options. Each strategy searches
// spaces of 10^5, 10^7 and 10^9 configurations with ten parameters, of which a tenth fails, up to
// 1,000 trials. An iteration is one ask() and one tell(); the time is that at this number of
// trials.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cmath>

#include "tests/layers.hpp"
#include "tuner/search/strategy.hpp"

namespace greta::test {
namespace {

constexpr int parameters = 10;

/// About 10^digits valid configurations of ten parameters.
Space space_of(int digits) {
  Alternative large{"large", {}, {}};
  const auto each = static_cast<int>(std::lround(std::pow(10.0, (digits + 0.2) / parameters)));
  for (int i = 0; i < parameters; ++i) {
    large.parameters.push_back({"P" + std::to_string(i), {}});
    for (int value = 0; value < each + i % 2; ++value) {
      large.parameters.back().values.push_back(1 << value);
    }
  }
  large.constraints.push_back({"product", "too large", p["P0"] * p["P1"] <= 1 << (2 * each - 3)});
  return Space({large});
}

Trial trial_of(const Space& space, const Choice& choice) {
  Trial trial;
  trial.config = space.config(choice);
  if (trial.config.hash() % 10 == 0) {
    trial.failure = Status::compile;
    return trial;
  }
  double time = 10;
  for (std::size_t i = 0; i < choice.values.size(); ++i) {
    time *= 1 + 0.2 * std::abs(static_cast<double>(choice.values[i]) - static_cast<double>(i % 3));
  }
  trial.measurement.median_us = time;
  return trial;
}

void search(benchmark::State& state, const std::string& strategy) {
  const Space space = space_of(static_cast<int>(state.range(0)));
  const auto searching = create_strategy(strategy, {&space, {}, 1, 1000});
  const auto step = [&] {
    const Choice choice = searching->ask().value();
    searching->tell(choice, trial_of(space, choice));
  };
  for (std::int64_t trial = 0; trial < state.range(1); ++trial) step();
  for (auto _ : state) step();
  state.counters["configurations"] = static_cast<double>(space.count());
}

}  // namespace
}  // namespace greta::test

int main(int argc, char** argv) {
  for (const auto& entry : greta::tuner::strategies()) {
    if (entry.name == "exhaustive") continue;
    const std::string name(entry.name);
    benchmark::RegisterBenchmark(
        name.c_str(), [name](benchmark::State& state) { greta::test::search(state, name); })
        ->ArgsProduct({{5, 7, 9}, {100, 1000}})
        ->Iterations(50)
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
