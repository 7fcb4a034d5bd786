// Grouped products with quantised weights by matrix cores: as quantized_gemm/matrix.hip, with GROUPED.

#if !defined(GROUPED) || GROUPED == 0
#error "GROUPED must be defined, and not be 0"
#endif

#include "quantized_gemm/matrix.hip"
