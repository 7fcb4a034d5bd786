#include "tuner/bench/device_work.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include "tuner/bench/undisturbed.hpp"
#include "tuner/measure/stopwatch.hpp"

namespace greta::tuner {
namespace {

// On a CPU, samples are taken one by one, so that a disturbed sample can be repeated.
Result<std::vector<double>> take_work_samples(Device& device, LaunchTimer& timer,
                                              const LaunchTimer::Record& record, int count) {
  if (!device.info().is_cpu()) return timer.take(record, count, 1, deadline_of(machine_patience_s));
  std::vector<double> samples;
  const auto one = [&]() -> Result<double> {
    const auto taken = timer.take(record, 1, 1, deadline_of(machine_patience_s));
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
  auto samples = take_work_samples(device, *work.timer, work.record, count + 1);
  if (!samples) return samples;
  samples->erase(samples->begin());  // warm-up
  for (double& us : *samples) us /= work.parts;
  return samples;
}

}  // namespace

void HeldWork::make_room(Device& device, const std::shared_ptr<DeviceWork>& work,
                         std::uint64_t bytes) {
  const auto found =
      std::find_if(held_.begin(), held_.end(), [&](const Held& one) { return one.work == work; });
  if (found != held_.end()) held_.erase(found);
  std::uint64_t all = bytes;
  for (const Held& one : held_) all += one.bytes;
  for (; !held_.empty() && all > device.info().memory_bytes / 2; held_.pop_back()) {
    all -= held_.back().bytes;
    *held_.back().work = DeviceWork{};
    device.trim();
  }
  held_.push_front({work, bytes});
}

Benchmark device_benchmark(Device& device, const std::string& op, const Sizes& sizes,
                           const WorkBytes& bytes, const MakeWork& make) {
  auto benchmark = machine_benchmark(device, Benchmark::Kind::platform, op, sizes, bytes.moved);
  auto work = std::make_shared<DeviceWork>();
  benchmark.device_bytes = bytes.held;
  benchmark.take = [&device, work, make, held = bytes.held, shelf = bytes.shelf](int count) {
    if (shelf) shelf->make_room(device, work, held);
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

}  // namespace greta::tuner
