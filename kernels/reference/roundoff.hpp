#pragma once

#include <limits>

#include "kernels/model/reference.hpp"

/// Constants of the error bounds of all references (docs/measurement.md).
namespace greta::kernels::reference {

/// Unit roundoff of f32.
inline constexpr double u = 0x1p-24;

/// Factor for terms of second order in u.
inline constexpr double slack = 1.001;

/// Expects any result, NaN as well: that of an infinity and a factor that may vanish.
inline constexpr Expected anything{std::numeric_limits<double>::quiet_NaN(),
                                   std::numeric_limits<double>::infinity()};

}  // namespace greta::kernels::reference
