#pragma once

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Makes the operation that returns the lowest column of each row's largest value.
Operation make_argmax();

}  // namespace greta::kernels
