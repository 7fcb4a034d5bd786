#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <thread>

#include "tuner/bench/host_speed.hpp"
#include "tuner/bench/host_timer.hpp"
#include "tuner/bench/machine_benchmarks.hpp"
#include "tuner/bench/undisturbed.hpp"
#include "tuner/measure/ceiling_kernels.hpp"
#include "tuner/measure/launch_timer.hpp"
#include "tuner/measure/stopwatch.hpp"

namespace greta::tuner {
namespace {

constexpr double patience_s = 30;
constexpr std::uint64_t host_copy_bytes = 128ULL << 20;
constexpr std::uint64_t host_chase_bytes = 128ULL << 20;
constexpr std::uint32_t chase_steps = 1 << 14;

using Benchmarks = std::vector<Benchmark>;

// Returns 32-bit indices that form one cycle through memory in random order, with a stride of a
// cache line.
std::vector<std::uint32_t> random_cycle(std::uint64_t bytes) {
  constexpr std::size_t line = 64 / sizeof(std::uint32_t);
  std::vector<std::uint32_t> order(bytes / 64), next(bytes / sizeof(std::uint32_t), 0);
  std::iota(order.begin(), order.end(), 0U);
  std::mt19937 random(1);
  std::shuffle(order.begin() + 1, order.end(), random);
  for (std::size_t i = 0; i < order.size(); ++i) {
    next[order[i] * line] = static_cast<std::uint32_t>(order[(i + 1) % order.size()] * line);
  }
  return next;
}

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

// Launches timed warm with the device's timestamps.
struct DeviceWork {
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<std::byte> arguments;
  LaunchTimer::Record record;
  std::optional<LaunchTimer> timer;
  double parts = 1;  // a sample is the time divided by this number
};

using MakeWork = std::function<Result<void>(Device&, DeviceWork&)>;

// On a CPU, samples are taken one by one, so that a disturbed sample can be repeated.
Result<std::vector<double>> take_samples(Device& device, LaunchTimer& timer,
                                         const LaunchTimer::Record& record, int count) {
  if (!device.info().is_cpu()) return timer.take(record, count, 1, deadline_of(patience_s));
  std::vector<double> samples;
  const auto one = [&]() -> Result<double> {
    const auto taken = timer.take(record, 1, 1, deadline_of(patience_s));
    if (!taken) return taken.failure();
    return taken->front();
  };
  for (int i = 0; i < count; ++i) {
    const auto us = undisturbed(one, Waiting::other_threads);
    if (!us) return us.failure();
    samples.push_back(*us);
  }
  return samples;
}

Result<std::vector<double>> take_on_device(Device& device, DeviceWork& work, int count,
                                           const MakeWork& make) {
  if (!work.timer) {
    auto timer = LaunchTimer::create(device, 0);
    if (!timer) return timer.failure();
    if (auto made = make(device, work); !made) return made.failure();
    work.timer.emplace(*std::move(timer));
  }
  if (auto awake = work.timer->reach_pace(); !awake) return awake.failure();
  auto samples = take_samples(device, *work.timer, work.record, count + 1);
  if (!samples) return samples;
  samples->erase(samples->begin());  // warm-up
  for (double& us : *samples) us /= work.parts;
  return samples;
}

Benchmark device_benchmark(Device& device, const std::string& op, const Sizes& sizes, double bytes,
                           const MakeWork& make) {
  auto benchmark = machine_benchmark(device, Benchmark::Kind::platform, op, sizes, bytes);
  auto work = std::make_shared<DeviceWork>();
  benchmark.take = [&device, work, make](int count) {
    return take_on_device(device, *work, count, make);
  };
  benchmark.control = [work] { return steady_us(*work->timer); };
  return benchmark;
}

Result<Buffer*> add_buffer(Device& device, DeviceWork& work, std::uint64_t bytes) {
  auto buffer = device.allocate(bytes);
  if (!buffer) return buffer.failure();
  work.buffers.push_back(*std::move(buffer));
  return work.buffers.back().get();
}

Result<Kernel*> add_kernel(Device& device, DeviceWork& work, const KernelSource& source) {
  auto kernel = device.compile(source);
  if (!kernel) return kernel.failure();
  work.kernels.push_back(*std::move(kernel));
  return work.kernels.back().get();
}

template <typename... Values>
void set_arguments(DeviceWork& work, Values... values) {
  const auto append = [&](const auto& value) {
    const auto at = work.arguments.size();
    work.arguments.resize(at + sizeof value);
    std::memcpy(&work.arguments[at], &value, sizeof value);
  };
  (append(values), ...);
  work.arguments.resize(16);
}

std::uint64_t copy_bytes(const DeviceInfo& info) {
  const std::uint64_t wanted = std::max<std::uint64_t>(4 * info.last_level_cache_bytes,
                                                       info.is_cpu() ? 64ULL << 20 : 1ULL << 30);
  return std::min(wanted, info.memory_bytes / 8) / copy_group_bytes * copy_group_bytes;
}

// Named and counted like copies of other libraries, so that the files can be joined.
Benchmark device_copy(Device& device, const std::string& op, bool by_kernel) {
  const std::uint64_t bytes = copy_bytes(device.info());
  auto benchmark = device_benchmark(
      device, op, {{"n", bytes / sizeof(float)}}, 2.0 * static_cast<double>(bytes),
      [bytes, by_kernel](Device& on, DeviceWork& work) -> Result<void> {
        const auto from = add_buffer(on, work, bytes), to = add_buffer(on, work, bytes);
        if (!from) return from.failure();
        if (!to) return to.failure();
        if (!by_kernel) {
          work.record = [a = *from, b = *to, bytes](Stream& stream) {
            return stream.copy(*b, 0, *a, 0, bytes);
          };
          return {};
        }
        const auto kernel = add_kernel(on, work, copy_kernel(on.info()));
        if (!kernel) return kernel.failure();
        set_arguments(work, (*from)->address(), (*to)->address());
        const auto groups = static_cast<std::uint32_t>(bytes / copy_group_bytes);
        work.record = [&work, k = *kernel, groups](Stream& stream) {
          return stream.launch(*k, {groups, 1, 1}, work.arguments);
        };
        return {};
      });
  benchmark.subject.typed = true;  // f32
  return benchmark;
}

Benchmark device_chase(Device& device, const std::string& op, std::uint64_t bytes) {
  return device_benchmark(
      device, op, {{"bytes", bytes}}, 0, [bytes](Device& on, DeviceWork& work) -> Result<void> {
        const auto memory = add_buffer(on, work, bytes);
        if (!memory) return memory.failure();
        const auto cycle = random_cycle(bytes);
        if (auto up = on.upload(**memory, 0, std::as_bytes(std::span(cycle))); !up) return up;
        const auto kernel = add_kernel(on, work, chase_kernel(on.info()));
        if (!kernel) return kernel.failure();
        set_arguments(work, (*memory)->address(), chase_steps);
        work.parts = chase_steps;
        work.record = [&work, k = *kernel](Stream& stream) {
          return stream.launch(*k, {1, 1, 1}, work.arguments);
        };
        return {};
      });
}

Benchmarks empty_launch(Device& device) {
  auto benchmark = device_benchmark(
      device, "empty_launch", {}, 0, [](Device& on, DeviceWork& work) -> Result<void> {
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
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Buffer> buffer;
  std::vector<std::byte> data;
  HostTimer timer;
};

Benchmarks synchronise(Device& device) {
  auto benchmark = machine_benchmark(device, Benchmark::Kind::platform, "synchronise", {}, 0);
  benchmark.calls = true;
  benchmark.control = [] { return Result<double>(wake_us()); };
  auto work = std::make_shared<HostWork>();
  benchmark.take = [&device, work](int count) -> Result<std::vector<double>> {
    if (!work->kernel) {
      work->stream = device.create_stream().value();
      work->kernel = device.compile(empty_kernel(device.info())).value();
    }
    return work->timer.take(count, [&](int calls) -> Result<void> {
      for (int i = 0; i < calls; ++i) {
        if (auto r = work->stream->launch(*work->kernel, {1, 1, 1}, {}); !r) return r;
        if (auto r = work->stream->synchronize(deadline_of(patience_s)); !r) return r;
      }
      return {};
    });
  };
  return {benchmark};
}

Benchmarks transfers(Device& device, const std::string& op) {
  Benchmarks list;
  for (const std::size_t bytes : {std::size_t{4}, std::size_t{64} << 10, std::size_t{16} << 20}) {
    auto benchmark = machine_benchmark(device, Benchmark::Kind::platform, op, {{"bytes", bytes}},
                                       static_cast<double>(bytes));
    benchmark.calls = true;
    auto work = std::make_shared<HostWork>();
    const bool up = op == "upload";
    benchmark.take = [&device, work, bytes, up](int count) -> Result<std::vector<double>> {
      if (!work->buffer) {
        work->data.resize(bytes);
        work->buffer = device.allocate(bytes).value();
        device.upload(*work->buffer, 0, work->data).value();
      }
      return work->timer.take(count, [&](int calls) -> Result<void> {
        for (int i = 0; i < calls; ++i) {
          auto moved = up ? device.upload(*work->buffer, 0, work->data)
                          : device.download(*work->buffer, 0, work->data);
          if (!moved) return moved;
        }
        return {};
      });
    };
    list.push_back(benchmark);
  }
  return list;
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
  const std::uint64_t far = copy_bytes(device.info());
  const std::map<std::string, std::function<Benchmarks()>> makers{
      {"cpu_copy", [&] { return cpu_copy(device); }},
      {"cpu_latency", [&] { return cpu_latency(device); }},
      {"copy", [&] { return Benchmarks{device_copy(device, "copy", true)}; }},
      {"copy_command", [&] { return Benchmarks{device_copy(device, "copy_command", false)}; }},
      {"latency", [&] { return Benchmarks{device_chase(device, "latency", far)}; }},
      {"cached_latency", [&] { return Benchmarks{device_chase(device, "cached_latency", 16384)}; }},
      {"empty_launch", [&] { return empty_launch(device); }},
      {"synchronise", [&] { return synchronise(device); }},
      {"upload", [&] { return transfers(device, "upload"); }},
      {"download", [&] { return transfers(device, "download"); }},
  };
  Benchmarks all;
  for (const auto& name : names) {
    for (auto& benchmark : makers.at(name)()) all.push_back(std::move(benchmark));
  }
  return all;
}

}  // namespace greta::tuner
