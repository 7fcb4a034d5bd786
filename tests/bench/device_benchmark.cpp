// What the device layer itself costs: greta_device_benchmark [--device=NAME] [Google Benchmark's
// options]. Run it on an idle machine, with --benchmark_repetitions=9 for medians.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/backend.hpp"
#include "runtime/device/telemetry.hpp"

namespace greta {

namespace {

constexpr Deadline patience = std::chrono::seconds(30);

KernelSource empty_source() {
  KernelSource source;
  source.name = "bench/empty";
  source.language = "glsl";
  source.text = "#version 460\nlayout(local_size_x = 1) in;\nvoid main() {}\n";
  return source;
}

/// One launch of a kernel that does nothing, submitted and waited for.
void empty_dispatch_round_trip(benchmark::State& state, Device& device) {
  const auto kernel = device.compile(empty_source()).value();
  const auto stream = device.create_stream().value();
  for (auto _ : state) {
    stream->launch(*kernel, {1, 1, 1}, {}).value();
    stream->synchronize(patience).value();
  }
}

/// The same, many to a submission: time for each.
void empty_dispatch_amortised(benchmark::State& state, Device& device) {
  constexpr int launches = 256;
  const auto kernel = device.compile(empty_source()).value();
  const auto stream = device.create_stream().value();
  for (auto _ : state) {
    for (int i = 0; i < launches; ++i) stream->launch(*kernel, {1, 1, 1}, {}).value();
    stream->synchronize(patience).value();
  }
  state.SetItemsProcessed(state.iterations() * launches);
  state.counters["per_launch"] = benchmark::Counter(
      launches, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

/// The host's side of a launch alone.
void record_launch(benchmark::State& state, Device& device) {
  const auto kernel = device.compile(empty_source()).value();
  auto stream = device.create_stream().value();
  int recorded = 0;
  for (auto _ : state) {
    stream->launch(*kernel, {1, 1, 1}, {}).value();
    if (++recorded % 4096 == 0) {
      state.PauseTiming();
      stream->synchronize(patience).value();
      state.ResumeTiming();
    }
  }
  stream->synchronize(patience).value();
}

void pool_allocate_and_free(benchmark::State& state, Device& device) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const auto keeps_the_chunk = device.allocate(bytes).value();
  for (auto _ : state) benchmark::DoNotOptimize(device.allocate(bytes).value());
}

void upload(benchmark::State& state, Device& device) {
  const std::vector<std::byte> data(static_cast<std::size_t>(state.range(0)));
  const auto buffer = device.allocate(data.size()).value();
  for (auto _ : state) device.upload(*buffer, 0, data).value();
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void download(benchmark::State& state, Device& device) {
  std::vector<std::byte> data(static_cast<std::size_t>(state.range(0)));
  const auto buffer = device.allocate(data.size()).value();
  for (auto _ : state) device.download(*buffer, 0, data).value();
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

struct CountingSink final : TelemetrySink {
  void count(const char*, std::uint64_t amount) override { total += amount; }
  void span(const char*, Clock::time_point, Clock::duration) override { ++total; }
  std::atomic<std::uint64_t> total{0};
};

/// A counter and a span, without a sink (0) or with one (1).
void telemetry_call(benchmark::State& state) {
  CountingSink sink;
  telemetry::set_sink(state.range(0) == 0 ? nullptr : &sink);
  for (auto _ : state) {
    const telemetry::Span span("bench");
    telemetry::count("bench");
    benchmark::ClobberMemory();
  }
  telemetry::set_sink(nullptr);
}

void register_all(Device& device) {
  const auto add = [&](const char* name, void (*function)(benchmark::State&, Device&)) {
    return benchmark::RegisterBenchmark(
        name, [&device, function](benchmark::State& state) { function(state, device); });
  };
  add("empty_dispatch_round_trip", empty_dispatch_round_trip)->UseRealTime();
  add("empty_dispatch_amortised", empty_dispatch_amortised)->UseRealTime();
  // A fixed number: what is recorded is run as well, which takes a CPU device far longer.
  add("record_launch", record_launch)->Iterations(4096);
  add("pool_allocate_and_free", pool_allocate_and_free)->Arg(256)->Arg(1 << 20);
  add("upload", upload)->Arg(4)->Arg(4096)->Arg(16 << 20)->UseRealTime();
  add("download", download)->Arg(4)->Arg(4096)->Arg(16 << 20)->UseRealTime();
  benchmark::RegisterBenchmark("telemetry_call", telemetry_call)->Arg(0)->Arg(1);
}

int run(int argc, char** argv) {
  constexpr std::string_view option = "--device=";
  std::string wanted = "auto";
  std::vector<char*> rest;
  for (char* const argument : std::span(argv, static_cast<std::size_t>(argc))) {
    if (std::string_view(argument).starts_with(option)) {
      wanted = std::string_view(argument).substr(option.size());
    } else {
      rest.push_back(argument);
    }
  }
  const auto device = open_device(wanted, {});
  if (!device) {
    fmt::print(stderr, "{}\n", device.failure().message);
    return 3;
  }
  const DeviceInfo& info = (*device)->info();
  benchmark::AddCustomContext("device", fmt::format("{} {}", info.id(), info.name));
  benchmark::AddCustomContext("driver", info.driver);
  register_all(**device);
  int count = static_cast<int>(rest.size());
  benchmark::Initialize(&count, rest.data());
  if (benchmark::ReportUnrecognizedArguments(count, rest.data())) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace

}  // namespace greta

int main(int argc, char** argv) {
  return greta::run(argc, argv);
}
