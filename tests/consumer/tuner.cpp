// Tunes a GEMM on the CPU's Vulkan device and prints the winner, using only the installed package.
#include "tuner/tuning/tuner.hpp"

#include <fmt/core.h>

#include <atomic>

using namespace greta::tuner;  // NOLINT

int main(int, char** arguments) {
  const std::filesystem::path folder = arguments[1];
  TunerOptions options;
  options.devices = {"lavapipe"};
  options.database = folder / "tuned.db";
  options.cache_directory = folder / "cache";
  options.budget = Budget::trials_of(4);
  const auto problem = options.catalog.read("gemm dtype=f32 out=f32 m=64 n=48 k=80");
  TunerObserver observer;
  const std::atomic<bool> stop = false;
  auto tuner = Tuner::open(options, {{.problem = problem.value()}}, observer, stop);
  if (!tuner) return fmt::print("{}\n", tuner.failure().message), 1;
  const auto result = (*tuner)->tune({.problem = *problem});
  if (!result) return fmt::print("{}\n", result.failure().message), 1;
  const auto& winner = result->sessions.front().winner;
  if (!winner) return fmt::print("no winner\n"), 1;
  fmt::print("{}: {:.1f} us, {:.2f}x the default\n", winner->config.text(),
             winner->measurement.median_us, winner->speedup);
}
