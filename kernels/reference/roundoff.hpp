#pragma once

#include "runtime/device/layers.hpp"

/// Constants of the error bounds of all references (docs/measurement.md).
namespace greta::kernels::reference {

/// Unit roundoff of f32.
inline constexpr double u = 0x1p-24;

/// Factor for terms of second order in u.
inline constexpr double slack = 1.001;

}  // namespace greta::kernels::reference
