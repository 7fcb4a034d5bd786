#pragma once

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// x times the share of a normal distribution below x.
Operation make_gelu();

}  // namespace greta::kernels
