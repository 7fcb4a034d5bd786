#pragma once

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Rows of a table that ids name.
Operation make_embedding();

}  // namespace greta::kernels
