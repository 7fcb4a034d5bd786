#pragma once

#include <memory>

#include "runtime/device/device.hpp"
#include "tuner/measure/reference_kernel.hpp"

namespace greta::tuner {

/// Work of a device that computes on the CPU which no change of GRETA changes: a short run of FMAs,
/// then a copy of memory. It lasts about as long as a small kernel and needs the same things
/// (waking the device's threads, arithmetic, cold memory), so what makes it slower makes kernels
/// slower.
class SteadyWork {
 public:
  static Result<SteadyWork> create(Device& device,
                                   std::shared_ptr<const ReferenceKernel> reference);
  Result<void> record(Stream& stream) const;
  /// What it leaves in the caches.
  static constexpr std::uint64_t written_bytes = 512 << 10;

 private:
  std::shared_ptr<const ReferenceKernel> reference_;
  std::unique_ptr<Buffer> from_, to_;
};

/// The same on the host, the fastest of a few, µs: dependent arithmetic on one core.
double spin_us();
/// A thread wakes another and is woken by it: there and back.
double wake_us();

}  // namespace greta::tuner
