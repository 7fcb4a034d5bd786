#pragma once

#include "kernels/templates/gemm/shape.hpp"

namespace greta::kernels::grouped_gemm {

/// Returns the problem in the form that gemm's variants read. Requires a problem that
/// check_problem() accepts.
gemm::Shape shape_of(const Problem& problem);

}  // namespace greta::kernels::grouped_gemm
