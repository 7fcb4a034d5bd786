// Measures how long distinct candidates of one GEMM take to compile in parallel with the compiler
// of a device: greta_compile_benchmark [--device=NAME | --architecture=gfx942] [--candidates=100]
// [--threads=N]. Uses no cache. Prints one line. The exit code is 1 if a candidate did not compile.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "kernels/model/problem_rules.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "runtime/device/hip/compiler.hpp"
#include "tests/catalog.hpp"

namespace greta::test {
namespace {

using Clock = std::chrono::steady_clock;
using Compile = std::function<Result<void>(const KernelSource&)>;

struct Options {
  std::string device = "auto";
  std::string architecture;  ///< instead of a device
  std::size_t candidates = 100;
  std::size_t threads = std::max(1U, std::thread::hardware_concurrency());
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Options parse(std::span<char* const> arguments) {
  Options options;
  for (const std::string_view argument : arguments) {
    const auto equals = std::min(argument.find('='), argument.size() - 1);
    const auto name = argument.substr(0, equals);
    const std::string value(argument.substr(equals + 1));
    if (name == "--device") {
      options.device = value;
    } else if (name == "--architecture") {
      options.architecture = value;
    } else if (name == "--candidates") {
      options.candidates = std::stoul(value);
    } else if (name == "--threads") {
      options.threads = std::stoul(value);
    } else {
      throw Error(fmt::format("unknown option {}", argument));
    }
  }
  return options;
}

/// Returns the kernels of this number of different configurations, drawn from all of a large f16
/// GEMM.
std::vector<KernelSource> draw(const DeviceInfo& device, std::size_t candidates) {
  const Operation& gemm = built_in("gemm");
  const auto problem =
      make_problem(gemm, {{{"m", "4096"}, {"n", "4096"}, {"k", "4096"}}, "f16", "f16"}).value();
  const Space space = gemm.space(problem, device);
  if (space.count() < 2 * candidates) throw Error("the space has too few configurations");
  std::mt19937_64 random(1);
  std::set<Config> drawn;
  std::set<std::string> seen;
  std::vector<KernelSource> kernels;
  while (drawn.size() < candidates) {
    const Config config = space.sample(random);
    if (!drawn.insert(config).second) continue;
    const LaunchPlan plan = gemm.plan(problem, device, config).value();
    for (const KernelSource& source : plan.sources) {
      if (seen.insert(source.content_key({}, {})).second) kernels.push_back(source);
    }
  }
  return kernels;
}

int measure(const Options& options, const DeviceInfo& device, const Compile& compile) {
  const auto kernels = draw(device, options.candidates);
  std::vector<double> times(kernels.size());
  std::atomic<std::size_t> next{0}, failed{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < kernels.size(); i = next++) {
      const auto start = Clock::now();
      const auto compiled = compile(kernels[i]);
      times[i] = seconds_since(start);
      if (compiled) continue;
      if (failed++ == 0) fmt::print(stderr, "{}\n", compiled.failure().message);
    }
  };
  // The compiler's one-time work per architecture is not part of a candidate's time.
  static_cast<void>(compile(kernels.front()));
  const auto start = Clock::now();
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < options.threads; ++i) threads.emplace_back(work);
  for (auto& thread : threads) thread.join();
  const double wall = seconds_since(start);
  std::sort(times.begin(), times.end());
  fmt::print(
      "{} with {}: {} candidates ({} kernels, {} failed) on {} threads in {:.2f} s; a kernel takes "
      "{:.2f} s (median), {:.2f} s at most\n",
      device.architecture, device.compiler, options.candidates, kernels.size(), failed.load(),
      options.threads, wall, times[times.size() / 2], times.back());
  return failed == 0 ? 0 : 1;
}

int measure_architecture(const Options& options) {
  auto device = architecture_info(options.architecture);
  if (!device) throw Error("unknown architecture " + options.architecture);
  const bool amd = device->vendor == "AMD";
  const auto compiler =
      std::move((amd ? hip::create_amd_compiler({}) : hip::create_nvidia_compiler({})).value());
  device->compiler = compiler->used_for(device->architecture).value();
  return measure(options, *device, [&](const KernelSource& source) -> Result<void> {
    const auto compiled = compiler->compile(source, device->architecture);
    if (!compiled) return compiled.failure();
    return {};
  });
}

int measure_device(const Options& options) {
  const auto device = std::move(open_device(options.device, {}).value());
  return measure(options, device->info(), [&](const KernelSource& source) -> Result<void> {
    const auto compiled = device->compile(source);
    if (!compiled) return compiled.failure();
    return {};
  });
}

int run(int argc, char** argv) try {
  const auto options = parse(std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
  return options.architecture.empty() ? measure_device(options) : measure_architecture(options);
} catch (const std::exception& error) {
  fmt::print(stderr, "greta_compile_benchmark: {}\n", error.what());
  return 2;
}

}  // namespace
}  // namespace greta::test

int main(int argc, char** argv) {
  return greta::test::run(argc, argv);
}
