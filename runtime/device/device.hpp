#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "runtime/device/device_info.hpp"
#include "runtime/device/kernel_source.hpp"
#include "runtime/device/result.hpp"
#include "runtime/device/tensor_map.hpp"

namespace greta::device {

using Deadline = std::chrono::nanoseconds;  ///< the longest time a call may wait

/// Number of workgroups in each dimension.
using Grid = std::array<std::uint32_t, 3>;

enum class Memory {
  device,   ///< fastest for kernels; also host-visible on integrated devices
  staging,  ///< host-visible, for transfers
};

/// Memory on a device. The destructor returns the memory to the device's pool and never throws. A
/// buffer must not be destroyed while work that uses it is in flight.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual std::uint64_t address() const = 0;  ///< device address of byte 0, at least 256-aligned
  virtual std::size_t size() const = 0;       ///< the requested size in bytes
  virtual std::byte* host() const = 0;        ///< mapped pointer, or nullptr
};

/// Statistics that the compiler or driver reports about a kernel's code. Fields that are not
/// reported are 0.
struct KernelStatistics {
  std::uint32_t registers = 0;              ///< vector registers per thread
  std::uint32_t accumulator_registers = 0;  ///< in a separate accumulator file (CDNA), per thread
  std::uint32_t scalar_registers = 0;       ///< per subgroup
  std::uint32_t shared_memory_bytes = 0;    ///< per workgroup
  std::uint32_t scratch_bytes = 0;          ///< private memory per thread
  std::uint32_t spilled_registers = 0;      ///< vector registers spilled to scratch memory
  std::uint32_t spilled_scalar_registers = 0;
  std::uint32_t code_bytes = 0;
  std::uint32_t matrix_instructions = 0;  ///< number in the code, not the number executed
  std::uint32_t subgroups_per_simd = 0;   ///< resident at once, computed by the compiler (RADV)
  double latency = 0;                     ///< compiler's estimate, in its own unit (cycles)
  double inverse_throughput = 0;          ///< compiler's estimate, in the same unit

  /// Whether a thread's data is placed in scratch memory: spilled registers, or arrays that are not
  /// held in registers. The NVIDIA driver reports only the total size.
  bool spills() const { return spilled_registers > 0 || scratch_bytes > 0; }
  bool operator==(const KernelStatistics&) const = default;
};

/// A compiled kernel.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual const std::string& content_key() const = 0;
  virtual bool from_cache() const = 0;  ///< whether it was found in the disk cache
  virtual KernelStatistics statistics() const { return {}; }
  /// Returns the machine code as text, one instruction per line. May compile the kernel a second
  /// time. Fails with `unavailable` where the driver or compiler provides none.
  virtual Result<std::string> listing() const;
};

/// A point in a stream's order, with the device's timestamp at that point.
class Event {
 public:
  virtual ~Event() = default;
};

/// Work that is recorded once and can be replayed at low cost: a HIP graph, or a Vulkan command
/// buffer. A graph keeps nothing alive: its kernels and buffers must outlive it. It must not be
/// destroyed while a replay is in flight.
class Graph {
 public:
  virtual ~Graph() = default;
};

/// When a launch may begin.
enum class LaunchOrder {
  in_turn,  ///< after all work that is recorded before it
  /// Where the device can (NVIDIA's programmatic dependent launch, sm_90 and later), a kernel with
  /// KernelSource::awaits_launches begins while the launch before it still runs. That saves the
  /// time between two launches. The caller promises that the operands that the kernel reads before
  /// it waits are not written by work in flight. Others are in turn.
  overlapping,
};

/// A queue of work that runs in order. Work starts when the stream is submitted (or synchronised).
/// A call that the device refuses, or that misses its deadline, returns a Failure. After `timeout`
/// or `device_lost` the device is unusable and must be opened again.
class Stream {
 public:
  virtual ~Stream() = default;
  /// Launches a kernel. `arguments` is the kernel's argument block: values packed at their natural
  /// alignment.
  virtual Result<void> launch(const Kernel& kernel, Grid grid, std::span<const std::byte> arguments,
                              LaunchOrder order = LaunchOrder::in_turn) = 0;
  virtual Result<void> copy(Buffer& to, std::size_t to_offset, const Buffer& from,
                            std::size_t from_offset, std::size_t bytes) = 0;
  /// Copies `bytes` from a device address to variable `index` of the kernel's constant memory, from
  /// which its later launches read. Fails with `unavailable` where kernels have none (GLSL).
  virtual Result<void> write_constant(const Kernel& kernel, std::size_t index, std::uint64_t from,
                                      std::size_t bytes);
  /// Writes a tensor map's form in argument blocks: tensor_map_bytes bytes. `address` is that of
  /// its first element, a multiple of 16. Fails with `unavailable` where kernels have no tensor
  /// maps.
  virtual Result<void> encode(const TensorMap& map, std::uint64_t address, std::byte* to);
  /// Fills a range with a 32-bit pattern. The offset and the size are multiples of 4.
  virtual Result<void> fill(Buffer& to, std::size_t offset, std::size_t bytes,
                            std::uint32_t pattern) = 0;
  virtual Result<void> record(Event& event) = 0;
  /// Runs a graph's work at this point of the stream's order. A graph may be replayed any number of
  /// times.
  virtual Result<void> replay(const Graph& graph) = 0;
  /// Makes all work recorded later wait for `event`, which another stream has recorded and
  /// submitted.
  virtual Result<void> wait(const Event& event) = 0;
  /// Hands the recorded work to the device and returns immediately.
  virtual Result<void> submit() = 0;
  /// Submits, and waits until all work has finished or `deadline` has passed (`timeout`).
  virtual Result<void> synchronize(Deadline deadline) = 0;
  /// Discards work that was recorded but not submitted. Events recorded in it count as never
  /// recorded.
  virtual void discard() = 0;
};

/// A part of a buffer to copy to the host: the bytes from `offset`, as many as `to` has.
struct Download {
  const Buffer* from = nullptr;
  std::size_t offset = 0;
  std::span<std::byte> to{};
};

struct MemoryStatistics {
  std::uint64_t in_use_bytes = 0;    ///< allocated to buffers
  std::uint64_t reserved_bytes = 0;  ///< obtained from the driver
  std::uint64_t peak_bytes = 0;      ///< highest in_use_bytes so far
  std::uint64_t allocations = 0;     ///< successful calls of allocate()
  std::uint64_t reuses = 0;          ///< allocations served without the driver
};

/// An open device. compile() and load() are thread-safe; all else is for one thread at a time.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;

  virtual Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes,
                                                   Memory memory = Memory::device) = 0;
  virtual MemoryStatistics memory() const = 0;
  /// Returns unused pooled memory to the driver.
  virtual void trim() = 0;

  /// Blocking copies, through staging memory where the host can't access the buffer. Offsets and
  /// sizes are in bytes and may have any alignment. These calls do not wait for work that was
  /// submitted to streams: synchronise the streams that write the buffer first, and before an
  /// upload also those that read it.
  virtual Result<void> upload(Buffer& to, std::size_t offset, std::span<const std::byte> from) = 0;
  Result<void> download(const Buffer& from, std::size_t offset, std::span<std::byte> to) {
    const Download part{&from, offset, to};
    return download_all({&part, 1});
  }
  /// Downloads several parts in little more time than one.
  virtual Result<void> download_all(std::span<const Download> parts) = 0;

  virtual Result<std::unique_ptr<Kernel>> compile(const KernelSource& source) = 0;
  /// Loads a kernel from a code object that was compiled elsewhere for this device's architecture.
  /// Only name, entry, block and argument_bytes of `source` are used, not its text. Fails with
  /// `unavailable` where the backend accepts no code objects.
  virtual Result<std::unique_ptr<Kernel>> load(const KernelSource& source,
                                               std::span<const std::byte> code_object);
  virtual Result<std::unique_ptr<Stream>> create_stream() = 0;
  virtual Result<std::unique_ptr<Event>> create_event() = 0;
  /// Creates a graph of the work that `record_work` records in the stream it is given: launches,
  /// copies and fills, which run in the order of recording. Events, waits, replays, submit() and
  /// synchronize() are refused there (`invalid_argument`). A failure that `record_work` returns is
  /// passed on.
  virtual Result<std::unique_ptr<Graph>> create_graph(
      const std::function<Result<void>(Stream&)>& record_work) = 0;
  /// Returns the device time between two events of a synchronised stream, in microseconds.
  virtual Result<double> elapsed_us(const Event& start, const Event& stop) = 0;
};

}  // namespace greta::device
