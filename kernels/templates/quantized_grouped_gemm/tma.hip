// Grouped products of many rows with quantised weights by warpgroups: as quantized_gemm/tma.hip, with GROUPED.

#if !defined(GROUPED) || GROUPED == 0
#error "GROUPED must be defined, and not be 0"
#endif

#include "quantized_gemm/tma.hip"
