#pragma once

#include <cstdint>
#include <memory>

#include "runtime/device/device.hpp"

namespace greta::tuner {

/// Evicts the contents of a device's caches before a cold sample. On a GPU it reads memory until
/// the caches hold nothing else, then writes as many bytes of it as the timed launch will write.
/// Each launch therefore pays for writing back exactly as many dirty bytes as it leaves
/// (docs/decisions/0011-a-cold-launch-owes-what-it-leaves.md). On a CPU it writes the memory.
class CacheFlush {
 public:
  /// `bytes` is the size of the memory, at least one; it is rounded up.
  static Result<CacheFlush> create(Device& device, std::uint64_t bytes);

  /// Records a flush. `written` is the number of bytes that the next launch writes; it is limited
  /// to the capacity of the caches.
  Result<void> record(Stream& stream, std::uint64_t written);
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::unique_ptr<Buffer> memory_;
  std::unique_ptr<Kernel> read_;  // null on a CPU
  std::uint64_t bytes_ = 0;
  std::uint64_t cache_bytes_ = 0;
  std::uint32_t most_groups_ = 1;
  std::uint32_t pattern_ = 1;  // changes with each flush, so that no write is elided
};

/// Returns the bytes that a flush moves through the caches: four times the last-level cache on a
/// GPU, since its replacement policy is not strictly LRU; twice on a CPU.
std::uint64_t default_flush_bytes(const DeviceInfo& info);

}  // namespace greta::tuner
