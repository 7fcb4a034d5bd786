#version 460
// Tiles on matrix cores of grouped products with quantised weights: as quantized_gemm/matrix.comp, with GROUPED.

#if !defined(GROUPED) || GROUPED == 0
#error "GROUPED must be defined, and not be 0"
#endif

#include "quantized_gemm/matrix.comp"
