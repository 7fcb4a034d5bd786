#pragma once

#include <memory>

#include "runtime/device/device.hpp"
#include "tuner/measure/reference_kernel.hpp"

namespace greta::tuner {

/// Constant work on a device that computes on the CPU, which no change of GRETA affects: a short
/// run of FMAs, then a copy of memory. It lasts about as long as a small kernel and uses the same
/// resources (waking the device's threads, arithmetic, cold memory), so disturbances of kernels
/// slow it down as well.
class SteadyWork {
 public:
  static Result<SteadyWork> create(Device& device,
                                   std::shared_ptr<const ReferenceKernel> reference);
  Result<void> record(Stream& stream) const;
  /// Number of bytes that it writes to the caches.
  static constexpr std::uint64_t written_bytes = 512 << 10;

 private:
  std::shared_ptr<const ReferenceKernel> reference_;
  std::unique_ptr<Buffer> from_, to_;
};

}  // namespace greta::tuner
