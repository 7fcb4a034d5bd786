#pragma once

#include "kernels/model/operation.hpp"
#include "kernels/templates/scaled_gemm/shape.hpp"

namespace greta::kernels::scaled_gemm {

Variant tiled(), matrix(), matrix_rows(), tma(), tma_rows(), gemv(), vendor();

}  // namespace greta::kernels::scaled_gemm
