// Measures host times of the compute API: an operation through a queue compared with the raw launch
// of its kernel, and the replay of a graph of the size of a decode step. greta_compute_benchmark
// [--device=NAME] and Google Benchmark's options. Times are those of the calling thread per
// operation or replay, without waiting for the device.

#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/pipeline/compute/pipeline.hpp"
#include "runtime/pipeline/compute/queue.hpp"
#include "runtime/pipeline/compute/runtime.hpp"
#include "tests/layers.hpp"

namespace greta::test {
namespace {

using Clock = std::chrono::steady_clock;

/// A runtime with operands of small operations, so that the device is never the bottleneck.
struct Bench {
  explicit Bench(const std::string& device) {
    RuntimeOptions options;
    options.device = device;
    runtime = Runtime::open(options).value();
    queue = runtime->queue().value();
    for (Tensor* const tensor : {&x, &y}) *tensor = runtime->allocate(DType::f32, {1, 64}).value();
    weight = runtime->allocate(DType::f32, {64}).value();
    q = runtime->allocate(DType::f32, {1, 4, 16}).value();
    keys = runtime->allocate(DType::f32, {2, 32, 16}).value();
    values = runtime->allocate(DType::f32, {2, 32, 16}).value();
    out = runtime->allocate(DType::f32, {1, 4, 16}).value();
    lengths = runtime->allocate(DType::i32, {1}).value();
    const std::int32_t length = 1;
    runtime->upload(lengths, std::as_bytes(std::span(&length, 1))).value();
  }
  void rmsnorm(Operations& ops) const { ops.rmsnorm(x, y, {.weight = weight}).value(); }
  void attention(Operations& ops) const { ops.attention(q, keys, values, lengths, out).value(); }

  std::unique_ptr<Runtime> runtime;
  std::unique_ptr<Queue> queue;
  Tensor x, y, weight, q, keys, values, lengths, out;
};

/// Times `operations` consecutive calls, then waits for the device.
template <typename Call>
void time_calls(benchmark::State& state, Queue& queue, const Call& call) {
  constexpr int operations = 256;
  call();  // compiles
  while (state.KeepRunningBatch(operations)) {
    queue.synchronize().value();
    const auto start = Clock::now();
    for (int i = 0; i < operations; ++i) call();
    state.SetIterationTime(std::chrono::duration<double>(Clock::now() - start).count());
  }
  queue.synchronize().value();
}

void raw_launch(benchmark::State& state, Bench& bench) {
  Stream& stream = bench.queue->stream();
  bench.rmsnorm(*bench.queue);
  const PreparedOperation& ready = *bench.runtime->prepared().at(0);
  const std::uint64_t operands[] = {bench.x.address(), bench.weight.address(), bench.y.address()};
  std::shared_ptr<Buffer> replaced;
  Workspace workspace;  // for split rows
  workspace.reserve(bench.runtime->device(), stream, ready.plan, replaced).value();
  const std::uint64_t room = workspace.address(ready.plan);
  int since_submit = 0;
  time_calls(state, *bench.queue, [&] {
    ready.plan.record(stream, operands, room).value();
    if (++since_submit % Queue::submit_after == 0) stream.submit().value();
  });
}

void replay(benchmark::State& state, Bench& bench, int operations) {
  Pipeline pipeline(*bench.runtime);
  for (int i = 0; i < operations; ++i) bench.rmsnorm(pipeline);
  const auto graph = pipeline.finish().value();
  for (auto _ : state) {
    bench.queue->synchronize().value();
    const auto start = Clock::now();
    bench.queue->replay(*graph).value();
    state.SetIterationTime(std::chrono::duration<double>(Clock::now() - start).count());
  }
  bench.queue->synchronize().value();
}

}  // namespace
}  // namespace greta::test

int main(int count, char** arguments) {
  using namespace greta::test;  // NOLINT
  std::string device = "auto";
  std::vector<char*> rest;
  for (int i = 0; i < count; ++i) {
    constexpr std::string_view option = "--device=";
    if (std::string_view(arguments[i]).starts_with(option)) {
      device = arguments[i] + option.size();
    } else {
      rest.push_back(arguments[i]);
    }
  }
  int rest_count = static_cast<int>(rest.size());
  benchmark::Initialize(&rest_count, rest.data());
  if (benchmark::ReportUnrecognizedArguments(rest_count, rest.data())) return 2;
  Bench bench(device);
  // A fixed number of iterations, because a CPU device takes far longer than the timed calls.
  const auto add = [](const char* name, int iterations, auto function) {
    benchmark::RegisterBenchmark(name, function)
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond)
        ->Iterations(iterations);
  };
  add("raw_launch/rmsnorm", 10240, [&](auto& state) { raw_launch(state, bench); });
  add("operation/rmsnorm", 10240,
      [&](auto& state) { time_calls(state, *bench.queue, [&] { bench.rmsnorm(*bench.queue); }); });
  add("operation/attention", 2560, [&](auto& state) {
    time_calls(state, *bench.queue, [&] { bench.attention(*bench.queue); });
  });
  add("replay/1_operation", 200, [&](auto& state) { replay(state, bench, 1); });
  add("replay/330_operations", 200, [&](auto& state) { replay(state, bench, 330); });
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
