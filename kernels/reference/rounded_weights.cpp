#include "kernels/reference/rounded_weights.hpp"

#include <algorithm>
#include <cmath>

namespace greta::kernels {

double rounding_of_weights(WeightFormat format, DType a, std::int64_t length) {
  if (format == WeightFormat::mxfp4) return 0;
  const bool has_scales = !in_blocks(format) || a == DType::f16;
  const int roundings = format == WeightFormat::q4_k                 ? 4
                        : has_scales && format != WeightFormat::q6_k ? 1
                                                                     : 2;
  return roundings * unit_roundoff(a) * std::min(std::sqrt(static_cast<double>(length)), 8.0);
}

}  // namespace greta::kernels
