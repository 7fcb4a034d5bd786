#pragma once

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// The lowest column of each row's largest value.
Operation make_argmax();

}  // namespace greta::kernels
