#pragma once

#include <string_view>
#include <vector>

#include "kernels/model/kernel_template.hpp"
#include "kernels/templates/gemm/shape.hpp"

namespace greta::gemm {

/// One way to compute a GEMM: what is tunable about it, and how its kernels are launched.
struct Variant {
  std::string_view name;
  /// Parameters and constraints for a problem on a device; empty lists of values are not allowed.
  Alternative (*space)(const Shape&, const DeviceInfo&);
  /// Kernels and launches of a configuration that the space holds.
  LaunchPlan (*plan)(const Shape&, const DeviceInfo&, const Config&);
  /// Sensible untuned choices, best first, some of which the constraints may reject; none where
  /// variants behind this one serve better.
  std::vector<Config> (*defaults)(const Shape&, const DeviceInfo&);
};

extern const Variant gemv, naive, matrix, tiled, split_k;

/// The explicit list of variants. The first one with a valid default is a problem's default.
const std::vector<const Variant*>& variants();

}  // namespace greta::gemm
