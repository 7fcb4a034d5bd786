#pragma once

#include "kernels/model/operation.hpp"
#include "kernels/templates/gemm/shape.hpp"

namespace greta::kernels::gemm {

Variant gemv(), naive(), matrix(), tf32x3(), tf32x3_tma(), tma(), tiled(), split_k(), vendor();

}  // namespace greta::kernels::gemm
