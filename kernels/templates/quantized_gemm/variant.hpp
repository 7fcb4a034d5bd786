#pragma once

#include "kernels/model/operation.hpp"
#include "kernels/templates/quantized_gemm/shape.hpp"

namespace greta::kernels::quantized_gemm {

Variant cluster(), digits(), gemv(), matrix(), stream(), tiled(), tma();

}  // namespace greta::kernels::quantized_gemm
