#pragma once

#include <cstdint>
#include <memory>

#include "runtime/device/device.hpp"

namespace greta::tuner {

/// A kernel of independent FP32 FMAs in registers. Its rate is the device's FMA ceiling. Its
/// duration is constant at constant clocks, so it reveals drift, and it keeps the clocks up.
class ReferenceKernel {
 public:
  static constexpr std::uint32_t steady = 25;    ///< iterations of a short run, to detect drift
  static constexpr std::uint32_t wake_up = 300;  ///< iterations that raise a GPU's clocks

  static Result<ReferenceKernel> create(Device& device);
  Result<void> record(Stream& stream, std::uint32_t iterations) const;
  /// Returns the FLOPs of one launch.
  double flops(std::uint32_t iterations) const;

 private:
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<Buffer> sink_;
  std::uint32_t groups_ = 1;
};

}  // namespace greta::tuner
