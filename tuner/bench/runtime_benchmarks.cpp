#include <atomic>
#include <functional>
#include <map>
#include <memory>

#include "runtime/device/telemetry.hpp"
#include "tuner/bench/host_speed.hpp"
#include "tuner/bench/host_timer.hpp"
#include "tuner/bench/machine_benchmarks.hpp"
#include "tuner/bench/undisturbed.hpp"
#include "tuner/measure/ceiling_kernels.hpp"
#include "tuner/measure/launch_timer.hpp"
#include "tuner/measure/reference_kernel.hpp"
#include "tuner/measure/stopwatch.hpp"

namespace greta::tuner {
namespace {

using Benchmarks = std::vector<Benchmark>;
using TakenSamples = Result<std::vector<double>>;

constexpr int launches = 256;  // number in one submission or graph
constexpr double stream_patience_s = 30;

Benchmark runtime_benchmark(const Device& device, const std::string& op, const Sizes& sizes = {}) {
  auto benchmark = machine_benchmark(device, Benchmark::Kind::runtime, op, sizes, 0);
  benchmark.calls = true;
  return benchmark;
}

Benchmarks allocate(Device& device) {
  Benchmarks list;
  for (const std::size_t bytes : {std::size_t{256}, std::size_t{1} << 20}) {
    auto benchmark = runtime_benchmark(device, "allocate", {{"bytes", bytes}});
    auto timer = std::make_shared<HostTimer>();
    benchmark.take = [&device, bytes, timer](int count) -> TakenSamples {
      // Keeps the pool's chunk alive that both allocations come from.
      auto keeper = device.allocate(bytes);
      if (!keeper) return keeper.failure();
      return timer->take(count, [&](int calls) -> Result<void> {
        for (int i = 0; i < calls; ++i) {
          if (auto buffer = device.allocate(bytes); !buffer) return buffer.failure();
        }
        return {};
      });
    };
    list.push_back(benchmark);
  }
  return list;
}

Benchmarks allocate_new(Device& device) {
  constexpr std::size_t bytes = 96ULL << 20;  // more than one chunk of the pool
  auto benchmark = runtime_benchmark(device, "allocate_new", {{"bytes", bytes}});
  auto timer = std::make_shared<HostTimer>(64);
  benchmark.take = [&device, timer](int count) -> TakenSamples {
    return timer->take(count, [&](int calls) -> Result<void> {
      for (int i = 0; i < calls; ++i) {
        device.trim();
        if (auto buffer = device.allocate(bytes); !buffer) return buffer.failure();
      }
      return {};
    });
  };
  return {benchmark};
}

struct EmptyLaunches {
  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Graph> graph;
  std::unique_ptr<Stream> stream;

  Result<void> record(Stream& to) const {
    for (int i = 0; i < launches; ++i) {
      if (auto r = to.launch(*kernel, {1, 1, 1}, {}); !r) return r;
    }
    return {};
  }
  // Returns the µs of recording alone if `op` measures recording, else of the whole submission.
  Result<double> submit(const std::string& op) {
    const Stopwatch watch;
    const auto recorded = op == "graph_replay" ? stream->replay(*graph) : record(*stream);
    if (!recorded) return recorded.failure();
    const double recorded_us = watch.seconds() * 1e6;
    if (auto done = stream->synchronize(deadline_of(stream_patience_s)); !done)
      return done.failure();
    return op == "record_launch" ? recorded_us : watch.seconds() * 1e6;
  }
  void open(Device& device) {
    if (stream) return;
    kernel = device.compile(empty_kernel(device.info())).value();
    graph = device.create_graph([this](Stream& to) { return record(to); }).value();
    stream = device.create_stream().value();
  }
};

// Times one launch: its recording, or its share of a submission until completion.
Benchmarks dispatch(Device& device, const std::string& op) {
  auto benchmark = runtime_benchmark(device, op, {{"launches", launches}});
  benchmark.control = [] { return Result<double>(wake_us()); };
  auto work = std::make_shared<EmptyLaunches>();
  benchmark.take = [&device, op, work](int count) -> TakenSamples {
    work->open(device);
    std::vector<double> samples;
    for (int i = 0; i <= count; ++i) {  // the first is a warm-up
      const auto us = undisturbed([&] { return work->submit(op); }, Waiting::all_threads);
      if (!us) return us.failure();
      if (i > 0) samples.push_back(*us / launches);
    }
    return samples;
  };
  return {benchmark};
}

Benchmarks event_pair(Device& device) {
  auto benchmark = runtime_benchmark(device, "event_pair");
  auto timer = std::make_shared<std::optional<LaunchTimer>>();
  benchmark.take = [&device, timer](int count) -> TakenSamples {
    if (!*timer) timer->emplace(std::move(LaunchTimer::create(device, 0).value()));
    const LaunchTimer::Record nothing = [](Stream&) { return Result<void>{}; };
    return (*timer)->take(nothing, count, 1, deadline_of(stream_patience_s));
  };
  return {benchmark};
}

// The host's view of some milliseconds of steady work, and the device clock's view.
struct LongWork {
  ReferenceKernel kernel;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Event> start, stop;

  explicit LongWork(Device& device)
      : kernel(std::move(ReferenceKernel::create(device).value())),
        stream(device.create_stream().value()),
        start(device.create_event().value()),
        stop(device.create_event().value()) {}

  Result<double> error_us(Device& device) {
    const std::uint32_t iterations = device.info().is_cpu() ? 100 : 5000;
    const Stopwatch watch;
    if (auto r = stream->record(*start); !r) return r.failure();
    if (auto r = kernel.record(*stream, iterations); !r) return r.failure();
    if (auto r = stream->record(*stop); !r) return r.failure();
    if (auto r = stream->synchronize(deadline_of(stream_patience_s)); !r) return r.failure();
    const double host_us = watch.seconds() * 1e6;
    const auto device_us = device.elapsed_us(*start, *stop);
    if (!device_us) return device_us;
    return host_us - *device_us;
  }
};

Benchmarks event_error(Device& device) {
  auto benchmark = runtime_benchmark(device, "event_error");
  auto work = std::make_shared<std::unique_ptr<LongWork>>();
  benchmark.take = [&device, work](int count) -> TakenSamples {
    if (!*work) *work = std::make_unique<LongWork>(device);
    std::vector<double> samples;
    for (int i = 0; i <= count; ++i) {
      const auto us = (*work)->error_us(device);
      if (!us) return us.failure();
      if (i > 0) samples.push_back(*us);
    }
    return samples;
  };
  return {benchmark};
}

struct CountingSink final : TelemetrySink {
  void count(const char*, std::uint64_t amount) override { total += amount; }
  void span(const char*, Clock::time_point, Clock::duration) override { ++total; }
  std::atomic<std::uint64_t> total{0};
};

Benchmarks telemetry_call(Device& device, bool on) {
  auto benchmark = runtime_benchmark(device, on ? "telemetry_on" : "telemetry_off");
  auto timer = std::make_shared<HostTimer>();
  benchmark.take = [on, timer](int count) -> TakenSamples {
    CountingSink sink;
    TelemetrySink* const before = telemetry::sink();
    telemetry::set_sink(on ? &sink : nullptr);
    auto samples = timer->take(count, [](int calls) -> Result<void> {
      for (int i = 0; i < calls; ++i) {
        const telemetry::Span span("bench");
        telemetry::count("bench");
        __asm__ volatile("" ::: "memory");  // prevents merging of the iterations
      }
      return {};
    });
    telemetry::set_sink(before);
    return samples;
  };
  return {benchmark};
}

}  // namespace

std::vector<Benchmark> runtime_benchmarks(Device& device, const std::vector<std::string>& names) {
  const std::map<std::string, std::function<Benchmarks()>> makers{
      {"allocate", [&] { return allocate(device); }},
      {"allocate_new", [&] { return allocate_new(device); }},
      {"record_launch", [&] { return dispatch(device, "record_launch"); }},
      {"dispatch", [&] { return dispatch(device, "dispatch"); }},
      {"graph_replay", [&] { return dispatch(device, "graph_replay"); }},
      {"event_pair", [&] { return event_pair(device); }},
      {"event_error", [&] { return event_error(device); }},
      {"telemetry_off", [&] { return telemetry_call(device, false); }},
      {"telemetry_on", [&] { return telemetry_call(device, true); }},
  };
  Benchmarks all;
  for (const auto& name : names) {
    for (auto& benchmark : makers.at(name)()) all.push_back(std::move(benchmark));
  }
  return all;
}

}  // namespace greta::tuner
