#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <span>

#include "tuner/bench/device_work.hpp"
#include "tuner/bench/memory_kernels.hpp"
#include "tuner/measure/ceiling_kernels.hpp"
#include "tuner/measure/stopwatch.hpp"

namespace greta::tuner {
namespace {

constexpr std::uint32_t chase_steps = 1 << 14;

using MemoryBenchmarks = std::vector<Benchmark>;

std::uint64_t copy_bytes(const DeviceInfo& info) {
  const std::uint64_t wanted = std::max<std::uint64_t>(4 * info.last_level_cache_bytes,
                                                       info.is_cpu() ? 64ULL << 20 : 1ULL << 30);
  return std::min(wanted, info.memory_bytes / 8) / copy_group_bytes * copy_group_bytes;
}

// The size of arrays that no cache holds, for kernels that are slow on the CPU.
std::uint64_t far_bytes(const DeviceInfo& info) {
  constexpr std::uint64_t most_on_cpu = std::uint64_t{64} << 20;
  return info.is_cpu() ? std::min(copy_bytes(info), most_on_cpu) : copy_bytes(info);
}

using Shelf = std::shared_ptr<HeldWork>;

// Named and counted like copies of other libraries, so that the files can be joined.
Benchmark device_copy(Device& device, const std::string& op, bool by_kernel, const Shelf& shelf) {
  const std::uint64_t bytes = copy_bytes(device.info());
  auto benchmark = device_benchmark(
      device, op, {{"n", bytes / sizeof(float)}},
      {.moved = 2.0 * static_cast<double>(bytes), .held = 2 * bytes, .shelf = shelf},
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

// A kernel whose arguments are an address, a number of chunks of copy_group_bytes and a number.
Benchmark chunk_benchmark(Device& device, const std::string& op, std::uint64_t bytes,
                          const WorkBytes& work_bytes, const KernelSource& source,
                          std::uint32_t groups, std::uint32_t number) {
  return device_benchmark(
      device, op, {{"bytes", bytes}}, work_bytes,
      [=, allocated = work_bytes.held](Device& on, DeviceWork& work) -> Result<void> {
        const auto memory = add_buffer(on, work, allocated);
        if (!memory) return memory.failure();
        const auto kernel = add_kernel(on, work, source);
        if (!kernel) return kernel.failure();
        constexpr std::uint32_t pattern = 0x3F9D70A4;  // some memory systems move zeros faster
        set_arguments(work, (*memory)->address(),
                      static_cast<std::uint32_t>(bytes / copy_group_bytes), number);
        auto stream = on.create_stream();
        if (!stream) return stream.failure();
        if (auto r = (*stream)->fill(**memory, 0, allocated, pattern); !r) return r;
        if (auto r = (*stream)->synchronize(deadline_of(machine_patience_s)); !r) return r;
        work.record = [&work, k = *kernel, groups](Stream& on_stream) {
          return on_stream.launch(*k, {groups, 1, 1}, work.arguments);
        };
        return {};
      });
}

// Streams through the device's memory, far beyond its caches. `arrays` of this size are used.
MemoryBenchmarks streaming(Device& device, const std::string& op, const KernelSource& source,
                           std::uint64_t arrays, const Shelf& shelf) {
  const std::uint64_t bytes = far_bytes(device.info());
  const auto pieces = static_cast<std::uint32_t>(bytes / copy_group_bytes);
  const std::uint32_t groups = std::min(pieces, device.info().max_grid[0]);
  const std::uint64_t all = arrays * bytes;
  return {chunk_benchmark(device, op, bytes,
                          {.moved = static_cast<double>(all), .held = all, .shelf = shelf}, source,
                          groups, groups)};
}

MemoryBenchmarks fill(Device& device, const Shelf& shelf) {
  const std::uint64_t bytes = far_bytes(device.info());
  return {device_benchmark(device, "fill", {{"bytes", bytes}},
                           {.moved = static_cast<double>(bytes), .held = bytes, .shelf = shelf},
                           [bytes](Device& on, DeviceWork& work) -> Result<void> {
                             const auto memory = add_buffer(on, work, bytes);
                             if (!memory) return memory.failure();
                             work.record = [to = *memory, bytes](Stream& stream) {
                               return stream.fill(*to, 0, bytes, 0x3F9D70A4);
                             };
                             return {};
                           })};
}

// Sizes of working sets, each `factor` times the one before, up to one that no cache holds. Devices
// that compute on the CPU are too slow for many and large ones.
std::vector<std::uint64_t> working_sets(const DeviceInfo& info, std::uint64_t factor) {
  constexpr std::uint64_t usual = std::uint64_t{16} << 20;
  const std::uint64_t wanted =
      info.is_cpu() ? usual : std::max(4 * info.last_level_cache_bytes, usual);
  const std::uint64_t most = std::min(far_bytes(info), wanted);
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t bytes = copy_group_bytes; bytes <= most; bytes *= info.is_cpu() ? 4 : factor)
    sizes.push_back(bytes);
  return sizes;
}

// All workgroups read the same working set, each from another place on, so often that the whole
// set is read at least twice.
MemoryBenchmarks cache_bandwidth(Device& device, const Shelf& shelf) {
  const DeviceInfo& info = device.info();
  MemoryBenchmarks list;
  for (const std::uint64_t bytes : working_sets(info, 2)) {
    const std::uint32_t groups = ceiling_groups(info);
    const std::uint64_t least = info.is_cpu() ? std::uint64_t{4} << 20 : std::uint64_t{512} << 20;
    const std::uint64_t wanted = std::max(least, 2 * bytes);
    const auto steps = static_cast<std::uint32_t>(
        std::max<std::uint64_t>(1, wanted / (groups * copy_group_bytes)));
    const double moved = static_cast<double>(groups) * steps * copy_group_bytes;
    list.push_back(chunk_benchmark(device, "cache_bandwidth", bytes,
                                   {.moved = moved, .held = bytes, .shelf = shelf},
                                   walk_kernel(info), groups, steps));
  }
  return list;
}

Benchmark device_chase(Device& device, const std::string& op, std::uint64_t bytes,
                       const Shelf& shelf) {
  return device_benchmark(device, op, {{"bytes", bytes}}, {.held = bytes, .shelf = shelf},
                          [bytes](Device& on, DeviceWork& work) -> Result<void> {
                            const auto memory = add_buffer(on, work, bytes);
                            if (!memory) return memory.failure();
                            const auto cycle = random_cycle(bytes);
                            if (auto up = on.upload(**memory, 0, std::as_bytes(std::span(cycle)));
                                !up)
                              return up;
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

MemoryBenchmarks cache_latency(Device& device, const Shelf& shelf) {
  MemoryBenchmarks list;
  for (const std::uint64_t bytes : working_sets(device.info(), 4))
    list.push_back(device_chase(device, "cache_latency", bytes, shelf));
  return list;
}

}  // namespace

std::vector<Benchmark> memory_benchmarks(Device& device, const std::string& name,
                                         const std::shared_ptr<HeldWork>& shelf) {
  const DeviceInfo& info = device.info();
  if (name == "copy" || name == "copy_command")
    return {device_copy(device, name, name == "copy", shelf)};
  if (name == "read") return streaming(device, name, read_kernel(info), 1, shelf);
  if (name == "write") return streaming(device, name, write_kernel(info), 1, shelf);
  if (name == "triad") return streaming(device, name, triad_kernel(info), 3, shelf);
  if (name == "fill") return fill(device, shelf);
  if (name == "cache_bandwidth") return cache_bandwidth(device, shelf);
  if (name == "cache_latency") return cache_latency(device, shelf);
  if (name == "cached_latency") return {device_chase(device, name, 16384, shelf)};
  return {device_chase(device, name, copy_bytes(info), shelf)};  // latency
}

}  // namespace greta::tuner
