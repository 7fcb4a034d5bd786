#pragma once

#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels::quantize {

/// Returns the ways to walk the rows: flat, held and streamed.
std::vector<Variant> variants();

}  // namespace greta::kernels::quantize
