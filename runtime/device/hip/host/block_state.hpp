#pragma once

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/hip/host/block_runner.hpp"

namespace greta::device::hip::host {

// Stack sizes, which limit a thread's private memory. Sanitizers need more, as they surround each
// variable.
inline constexpr std::size_t stack_bytes = std::size_t{128} << 10;
inline constexpr std::size_t sanitized_stack_bytes = std::size_t{256} << 10;

inline std::string text(const greta_host::Index& index) {
  return fmt::format("({},{},{})", index.x, index.y, index.z);
}

inline std::string text(const greta_host::Site& site) {
  return fmt::format("{} at {}:{}", site.what, site.file, site.line);
}

/// An asynchronous copy whose data has not been written to shared memory yet. Its target, which the
/// copy may write at any time, has bytes 0xFF.
struct BlockRunner::Copy {
  void* to;
  unsigned bytes;
  unsigned group;
  std::array<unsigned char, 16> data;
};

/// The blocks of a cluster, by rank, and its barrier.
struct BlockRunner::Cluster {
  std::vector<BlockRunner*> blocks;
  unsigned phase = 1;
};

struct BlockRunner::Thread : greta_host::Thread {
  BlockRunner* runner;
  Fiber* fiber;
  State state;
  bool in_phase;           ///< has arrived at the cluster's barrier and not waited since
  unsigned cluster_phase;  ///< in which it arrived there last; 0: never
  greta_host::Site site;   ///< where it waits
  unsigned groups;         ///< number of committed groups of copies
  std::vector<Copy> copies;
};

struct BlockRunner::Wave : greta_host::Wave {
  std::uint64_t live = 0;     ///< lanes that have not ended
  std::uint64_t ready = 0;    ///< live lanes that can run
  std::uint64_t waiting = 0;  ///< lanes in a wave operation
  unsigned first = 0;         ///< index of the thread of lane 0
  greta_host::Site site{};    ///< the wave operation
  std::vector<greta_host::Slot> memory;
};

/// A barrier for some of the block's threads, for which `expected` must arrive.
struct BlockRunner::PartialBarrier {
  unsigned expected = 0, arrived = 0;
  std::vector<Thread*> waiting{};
};

/// Bytes that are written when the phase of a barrier ends.
struct BlockRunner::StagedChunk {
  Thread* thread;        ///< that started the copy; null if it was sent, or is of another block
  unsigned char* to;     ///< null: the block's own store comes after it
  unsigned char* shown;  ///< its place in what the cluster sees, where it is written, too; or null
  std::array<unsigned char, 16> data;
};

/// A barrier in shared memory that counts arrivals and copied bytes (PTX: mbarrier).
struct BlockRunner::CountedBarrier {
  unsigned arrivals = 0;  ///< of each phase
  unsigned pending = 0;   ///< of the current phase
  std::uint64_t expected_bytes = 0;
  unsigned parity = 0;  ///< of the current phase
  unsigned number = 0;  ///< the race detector's
  bool shown = false;   ///< to the other blocks of the cluster
  std::deque<StagedChunk> copies{};
  std::vector<std::pair<Thread*, Copy>> thread_copies{};  ///< whose threads arrived with them
  std::vector<Thread*> waiting{};
  std::size_t unseen = 0;  ///< threads that the end of the latest phase released, not run since
};

template <typename Use>
void BlockRunner::each_part(Use use) const {
  use(entry_->shared, entry_->dynamic + launch_->dynamic_bytes);
  use(entry_->dynamic + entry_->dynamic_bytes, entry_->shared_end);
}

/// Marks the scope in which a kernel's call is served. A signal must not interrupt it.
class BlockRunner::Outside {
 public:
  explicit Outside(BlockRunner& runner) : runner_(runner) {
    runner_.in_kernel_ = 0;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~Outside() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    runner_.in_kernel_ = 1;
  }
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  BlockRunner& runner_;
};

}  // namespace greta::device::hip::host
