#pragma once

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Makes the operation gelu: x times the normal distribution function of x.
Operation make_gelu();

}  // namespace greta::kernels
