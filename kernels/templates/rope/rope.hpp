#pragma once

#include "kernels/model/kernel_template.hpp"

namespace greta::kernels {

/// Rotary position embedding.
KernelTemplate make_rope();

}  // namespace greta::kernels
