#pragma once

#include <cstdint>
#include <memory>

#include "runtime/device/device.hpp"

namespace greta::tuner {

/// A kernel that does nothing but independent FP32 FMAs in registers: its rate is the device's FMA
/// ceiling, and its duration is steady, so that it shows drift and keeps the clocks up.
class ReferenceKernel {
 public:
  static constexpr std::uint32_t steady = 25;     ///< iterations of a short run, to notice drift
  static constexpr std::uint32_t wake_up = 1000;  ///< iterations that bring a GPU's clocks up

  static Result<ReferenceKernel> create(Device& device);
  Result<void> record(Stream& stream, std::uint32_t iterations) const;
  /// FLOPs of one launch.
  double flops(std::uint32_t iterations) const;

 private:
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<Buffer> sink_;
  std::uint32_t groups_ = 1;
};

}  // namespace greta::tuner
