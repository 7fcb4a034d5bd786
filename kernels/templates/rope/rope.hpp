#pragma once

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Rotary position embedding.
Operation make_rope();

}  // namespace greta::kernels
