#pragma once

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Makes the operation C = A + B.
Operation make_add();

}  // namespace greta::kernels
