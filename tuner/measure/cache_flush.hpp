#pragma once

#include <cstdint>
#include <memory>

#include "runtime/device/device.hpp"

namespace greta::tuner {

/// Makes a device's caches cold. On a GPU memory is read until nothing else is left in them, and
/// then as much of it is overwritten as the launch to be timed will write itself: each launch pays
/// for as many bytes being written back as it leaves behind, no more and no less
/// (docs/decisions/0011-a-cold-launch-owes-what-it-leaves.md). On a CPU the memory is overwritten.
class CacheFlush {
 public:
  /// `bytes`: of the memory, at least one; rounded up.
  static Result<CacheFlush> create(Device& device, std::uint64_t bytes);

  /// `written`: bytes that the launch which follows leaves in caches, if they hold so many.
  Result<void> record(Stream& stream, std::uint64_t written);
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::unique_ptr<Buffer> memory_;
  std::unique_ptr<Kernel> read_;  // none on a CPU
  std::uint64_t bytes_ = 0;
  std::uint64_t cache_bytes_ = 0;
  std::uint32_t most_groups_ = 1;
  std::uint32_t pattern_ = 1;  // changes with each flush, so that no write can be elided
};

/// How much memory passes through the caches for a cold sample: four times the last-level cache on
/// a GPU, as caches don't replace strictly in order; twice on a CPU.
std::uint64_t default_flush_bytes(const DeviceInfo& info);

}  // namespace greta::tuner
