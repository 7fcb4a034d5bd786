#pragma once

#include "kernels/model/kernel_template.hpp"

namespace greta::kernels {

/// out = silu(gate) * up: the gated activation of feed-forward layers.
KernelTemplate make_silu_mul();

}  // namespace greta::kernels
