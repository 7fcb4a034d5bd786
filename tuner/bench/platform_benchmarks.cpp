#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <thread>

#include "tuner/bench/device_work.hpp"
#include "tuner/bench/host_speed.hpp"
#include "tuner/bench/host_timer.hpp"
#include "tuner/bench/machine_benchmarks.hpp"
#include "tuner/bench/peer_benchmarks.hpp"
#include "tuner/bench/undisturbed.hpp"
#include "tuner/measure/ceiling_kernels.hpp"
#include "tuner/measure/launch_timer.hpp"
#include "tuner/measure/stopwatch.hpp"

namespace greta::tuner {
namespace {

constexpr std::uint64_t host_copy_bytes = 128ULL << 20;
constexpr std::uint64_t host_chase_bytes = 128ULL << 20;

using Benchmarks = std::vector<Benchmark>;

void copy_on_all_cores(std::vector<std::byte>& to, const std::vector<std::byte>& from) {
  const std::size_t threads = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t part = from.size() / threads;
  std::vector<std::thread> workers;
  for (std::size_t i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] { std::memcpy(&to[i * part], &from[i * part], part); });
  }
  for (auto& worker : workers) worker.join();
}

struct HostCopy {
  std::vector<std::byte> from{host_copy_bytes}, to{host_copy_bytes};
  HostTimer timer;
};

Benchmarks cpu_copy(Device& device) {
  auto benchmark = machine_benchmark(device, Benchmark::Kind::platform, "cpu_copy",
                                     {{"bytes", host_copy_bytes}}, 2.0 * host_copy_bytes);
  auto state = std::make_shared<std::unique_ptr<HostCopy>>();
  benchmark.take = [state](int count) {
    if (!*state) *state = std::make_unique<HostCopy>();
    return (*state)->timer.take(count, [&](int calls) -> Result<void> {
      for (int i = 0; i < calls; ++i) copy_on_all_cores((*state)->to, (*state)->from);
      return {};
    });
  };
  return {benchmark};
}

struct HostChase {
  std::vector<std::uint32_t> next = random_cycle(host_chase_bytes);
  std::uint32_t at = 0;
  HostTimer timer;
};

Benchmarks cpu_latency(Device& device) {
  auto benchmark = machine_benchmark(device, Benchmark::Kind::platform, "cpu_latency",
                                     {{"bytes", host_chase_bytes}}, 0);
  auto state = std::make_shared<std::unique_ptr<HostChase>>();
  benchmark.take = [state](int count) {
    if (!*state) *state = std::make_unique<HostChase>();
    return (*state)->timer.take(count, [&](int calls) -> Result<void> {
      // The position is stored, so that no read can be optimised away.
      for (int i = 0; i < calls; ++i) (*state)->at = (*state)->next[(*state)->at];
      return {};
    });
  };
  return {benchmark};
}

Benchmarks empty_launch(Device& device) {
  auto benchmark = device_benchmark(
      device, "empty_launch", {}, {}, [](Device& on, DeviceWork& work) -> Result<void> {
        const auto kernel = add_kernel(on, work, empty_kernel(on.info()));
        if (!kernel) return kernel.failure();
        work.record = [k = *kernel](Stream& stream) { return stream.launch(*k, {1, 1, 1}, {}); };
        return {};
      });
  benchmark.calls = true;
  // On a CPU, waking threads dominates a launch.
  if (device.info().is_cpu()) benchmark.control = [] { return Result<double>(wake_us()); };
  return {benchmark};
}

struct HostWork {
  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Graph> graph;
  std::unique_ptr<Stream> stream;
  HostTimer timer;
};

// Waiting for an empty kernel that is launched, or replayed as a graph.
Benchmarks synchronise(Device& device, bool as_graph) {
  auto benchmark = machine_benchmark(device, Benchmark::Kind::platform,
                                     as_graph ? "synchronise_graph" : "synchronise", {}, 0);
  benchmark.calls = true;
  benchmark.control = [] { return Result<double>(wake_us()); };
  auto work = std::make_shared<HostWork>();
  benchmark.take = [&device, work, as_graph](int count) -> Result<std::vector<double>> {
    const auto launch = [&](Stream& stream) { return stream.launch(*work->kernel, {1, 1, 1}, {}); };
    if (!work->kernel) {
      work->stream = device.create_stream().value();
      work->kernel = device.compile(empty_kernel(device.info())).value();
      if (as_graph) work->graph = device.create_graph(launch).value();
    }
    return work->timer.take(count, [&](int calls) -> Result<void> {
      for (int i = 0; i < calls; ++i) {
        auto begun = as_graph ? work->stream->replay(*work->graph) : launch(*work->stream);
        if (!begun) return begun;
        if (auto r = work->stream->synchronize(deadline_of(machine_patience_s)); !r) return r;
      }
      return {};
    });
  };
  return {benchmark};
}

}  // namespace

Benchmark machine_benchmark(const Device& device, Benchmark::Kind kind, const std::string& name,
                            Sizes sizes, double bytes) {
  Benchmark benchmark;
  benchmark.kind = kind;
  benchmark.subject = {.problem = {.op = name, .attributes = {}, .dims = std::move(sizes)},
                       .typed = false,
                       .cache = CacheState::warm};
  benchmark.subject.set_device(device.info());
  benchmark.work.bytes = bytes;
  benchmark.control = [] { return Result<double>(spin_us()); };
  return benchmark;
}

std::vector<Benchmark> platform_benchmarks(Device& device, const std::vector<std::string>& names) {
  const auto shelf = std::make_shared<HeldWork>();
  const auto pairs = peer_pairs(device);
  std::map<std::string, std::function<Benchmarks()>> makers{
      {"cpu_copy", [&] { return cpu_copy(device); }},
      {"cpu_latency", [&] { return cpu_latency(device); }},
      {"empty_launch", [&] { return empty_launch(device); }},
      {"synchronise", [&] { return synchronise(device, false); }},
      {"synchronise_graph", [&] { return synchronise(device, true); }},
  };
  for (const char* name : {"copy", "copy_command", "read", "write", "triad", "fill", "latency",
                           "cached_latency", "cache_bandwidth", "cache_latency"}) {
    makers.emplace(name,
                   [&device, name, &shelf] { return memory_benchmarks(device, name, shelf); });
  }
  for (const char* name : {"peer_write", "peer_read", "peer_both_ways", "peer_latency"}) {
    makers.emplace(name, [&device, name, &pairs] { return peer_benchmarks(device, name, pairs); });
  }
  for (const char* name : {"upload", "download", "upload_stream", "download_stream", "both_ways",
                           "upload_and_compute", "both_ways_and_compute"}) {
    makers.emplace(name, [&device, name] { return transfer_benchmarks(device, name); });
  }
  Benchmarks all;
  for (const auto& name : names) {
    for (auto& benchmark : makers.at(name)()) all.push_back(std::move(benchmark));
  }
  return all;
}

}  // namespace greta::tuner
