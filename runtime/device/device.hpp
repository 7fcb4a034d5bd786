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

namespace greta::device {

using Deadline = std::chrono::nanoseconds;  ///< how long a call may wait

/// Number of workgroups in each dimension.
using Grid = std::array<std::uint32_t, 3>;

enum class Memory {
  device,   ///< fastest for kernels; host-visible as well where the device is integrated
  staging,  ///< host-visible, for transfers
};

/// Memory on a device. Destroying it returns the memory to the device's pool; it never throws.
/// Must not be destroyed while work that uses it is in flight.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual std::uint64_t address() const = 0;  ///< device address of byte 0, at least 256-aligned
  virtual std::size_t size() const = 0;       ///< bytes asked for
  virtual std::byte* host() const = 0;        ///< mapped pointer, or nullptr
};

/// What the compiler or driver says about a kernel's code; fields that nobody reports are 0.
struct KernelStatistics {
  std::uint32_t registers = 0;              ///< vector registers per thread
  std::uint32_t accumulator_registers = 0;  ///< of a separate accumulator file (CDNA), per thread
  std::uint32_t scalar_registers = 0;       ///< per subgroup
  std::uint32_t shared_memory_bytes = 0;    ///< per workgroup
  std::uint32_t scratch_bytes = 0;          ///< private memory per thread
  std::uint32_t spilled_registers = 0;      ///< vector registers that live in scratch memory
  std::uint32_t spilled_scalar_registers = 0;
  std::uint32_t code_bytes = 0;
  std::uint32_t matrix_instructions = 0;  ///< in the code, not executed
  std::uint32_t subgroups_per_simd = 0;   ///< resident at once, as the compiler reckons (RADV)
  double latency = 0;                     ///< compiler's estimate, in its own unit (cycles)
  double inverse_throughput = 0;          ///< likewise

  /// Whether a thread's data lies in scratch memory: spilled registers, and arrays that are not
  /// held in registers. The NVIDIA driver says only how much memory that is.
  bool spills() const { return spilled_registers > 0 || scratch_bytes > 0; }
  bool operator==(const KernelStatistics&) const = default;
};

/// A compiled kernel.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual const std::string& content_key() const = 0;
  virtual bool from_cache() const = 0;  ///< true when the disk cache had it
  virtual KernelStatistics statistics() const { return {}; }
  /// The machine code as text, one instruction a line. May compile the kernel once more. Fails with
  /// `unavailable` where the driver or compiler gives none.
  virtual Result<std::string> listing() const;
};

/// A point in a stream's order, with the device's clock at that point.
class Event {
 public:
  virtual ~Event() = default;
};

/// Work that was recorded once and can be replayed at little cost: a HIP graph, or a Vulkan command
/// buffer. Keeps nothing alive: its kernels and buffers must outlive it. Must not be destroyed
/// while a replay is in flight.
class Graph {
 public:
  virtual ~Graph() = default;
};

/// A queue of work that runs in order. Work starts when the stream is submitted (or synchronised).
/// Every call that the device refuses, or that misses its deadline, is a Failure; after `timeout`
/// or `device_lost` the device is unusable and must be opened again.
class Stream {
 public:
  virtual ~Stream() = default;
  /// `arguments` is the kernel's argument block: values packed at their natural alignment.
  virtual Result<void> launch(const Kernel& kernel, Grid grid,
                              std::span<const std::byte> arguments) = 0;
  virtual Result<void> copy(Buffer& to, std::size_t to_offset, const Buffer& from,
                            std::size_t from_offset, std::size_t bytes) = 0;
  /// Repeats a 32-bit pattern. Offset and size are multiples of 4.
  virtual Result<void> fill(Buffer& to, std::size_t offset, std::size_t bytes,
                            std::uint32_t pattern) = 0;
  virtual Result<void> record(Event& event) = 0;
  /// Runs a graph's work at this place of the order. A graph may be replayed any number of times.
  virtual Result<void> replay(const Graph& graph) = 0;
  /// Work recorded after this runs after `event`, which another stream has recorded and submitted.
  virtual Result<void> wait(const Event& event) = 0;
  /// Hands what was recorded to the device and returns at once.
  virtual Result<void> submit() = 0;
  /// Submits, and waits until everything is done or `deadline` has passed (`timeout`).
  virtual Result<void> synchronize(Deadline deadline) = 0;
  /// Forgets what was recorded and not submitted. Events recorded there count as never recorded.
  virtual void discard() = 0;
};

struct MemoryStatistics {
  std::uint64_t in_use_bytes = 0;    ///< handed out
  std::uint64_t reserved_bytes = 0;  ///< held from the driver
  std::uint64_t peak_bytes = 0;      ///< highest in_use_bytes so far
  std::uint64_t allocations = 0;     ///< calls to allocate that succeeded
  std::uint64_t reuses = 0;          ///< of these, served without asking the driver
};

/// An open device. Thread-safe for compile(); everything else belongs to one thread at a time.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;

  virtual Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes,
                                                   Memory memory = Memory::device) = 0;
  virtual MemoryStatistics memory() const = 0;
  /// Gives pooled memory that nobody uses back to the driver.
  virtual void trim() = 0;

  /// Blocking copies, through staging memory where the host can't reach the buffer; offsets and
  /// sizes are bytes, any alignment. Work that was submitted to streams is not waited for:
  /// synchronise streams that write the buffer first, and before an upload those that read it.
  virtual Result<void> upload(Buffer& to, std::size_t offset, std::span<const std::byte> from) = 0;
  virtual Result<void> download(const Buffer& from, std::size_t offset,
                                std::span<std::byte> to) = 0;

  virtual Result<std::unique_ptr<Kernel>> compile(const KernelSource& source) = 0;
  /// A kernel from a code object that was compiled elsewhere for this device's architecture. Of
  /// `source`, name, entry, block and argument_bytes are used; its text is not. Fails with
  /// `unavailable` where a backend takes none.
  virtual Result<std::unique_ptr<Kernel>> load(const KernelSource& source,
                                               std::span<const std::byte> code_object);
  virtual Result<std::unique_ptr<Stream>> create_stream() = 0;
  virtual Result<std::unique_ptr<Event>> create_event() = 0;
  /// Makes a graph of what `record_work` records in the stream it is given: launches, copies and
  /// fills, which run in their order. Events, waits, replays, submit() and synchronize() are
  /// refused there (`invalid_argument`), and a failure that `record_work` returns is passed on.
  virtual Result<std::unique_ptr<Graph>> create_graph(
      const std::function<Result<void>(Stream&)>& record_work) = 0;
  /// Device time between two events of a synchronised stream, in microseconds.
  virtual Result<double> elapsed_us(const Event& start, const Event& stop) = 0;
};

}  // namespace greta::device
