#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tuner/bench/machine_benchmarks.hpp"
#include "tuner/measure/launch_timer.hpp"

namespace greta::tuner {

/// Launches that a benchmark of the machine times warm, with the device's timestamps.
struct DeviceWork {
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<std::byte> arguments;
  LaunchTimer::Record record;
  std::optional<LaunchTimer> timer;
  double parts = 1;  ///< a sample is the time divided by this number
};

/// Prepares the work of a benchmark, when its first block is taken.
using MakeWork = std::function<Result<void>(Device&, DeviceWork&)>;

/// The works of a device that hold much memory. When another one needs it, the ones that have not
/// run for the longest time are given up; they are prepared again for their next block.
class HeldWork {
 public:
  /// Makes room for `bytes`, so that at most half of the device's memory is held.
  void make_room(Device& device, const std::shared_ptr<DeviceWork>& work, std::uint64_t bytes);

 private:
  struct Held {
    std::shared_ptr<DeviceWork> work;
    std::uint64_t bytes = 0;
  };
  std::list<Held> held_;  // most recently used first
};

/// What a benchmark of the platform moves and holds, in bytes.
struct WorkBytes {
  double moved = 0;                   ///< by a sample
  std::uint64_t held = 0;             ///< by its buffers
  std::shared_ptr<HeldWork> shelf{};  ///< null if it holds little
};

/// Returns a benchmark of the platform. The device must outlive it.
Benchmark device_benchmark(Device& device, const std::string& op, const Sizes& sizes,
                           const WorkBytes& bytes, const MakeWork& make);

/// Adds a buffer or a kernel, which belongs to the work.
Result<Buffer*> add_buffer(Device& device, DeviceWork& work, std::uint64_t bytes);
Result<Kernel*> add_kernel(Device& device, DeviceWork& work, const KernelSource& source);

/// Sets the argument block of 16 bytes.
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

/// Returns 32-bit indices that form one cycle through memory in random order, with a stride of a
/// cache line.
std::vector<std::uint32_t> random_cycle(std::uint64_t bytes);

/// Deadline of work of the machine's benchmarks, in seconds.
inline constexpr double machine_patience_s = 30;

// Parts of platform_benchmarks(), in files of their own.

/// Memory of the device: copy, copy_command, read, write, triad, fill, latency and the ladders.
/// `name` is one of these platform_names().
std::vector<Benchmark> memory_benchmarks(Device& device, const std::string& name,
                                         const std::shared_ptr<HeldWork>& shelf);
/// Transfers between host and device. `name` is one of these platform_names().
std::vector<Benchmark> transfer_benchmarks(Device& device, const std::string& name);

}  // namespace greta::tuner
