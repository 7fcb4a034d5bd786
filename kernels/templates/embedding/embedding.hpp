#pragma once

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Makes the operation that gathers rows of a table by ids.
Operation make_embedding();

}  // namespace greta::kernels
