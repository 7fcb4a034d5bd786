#pragma once

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Makes the operation out = silu(gate) * up, the gated activation of feed-forward layers.
Operation make_silu_mul();

}  // namespace greta::kernels
