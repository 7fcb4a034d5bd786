#pragma once

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Makes the rotary position embedding.
Operation make_rope();

}  // namespace greta::kernels
