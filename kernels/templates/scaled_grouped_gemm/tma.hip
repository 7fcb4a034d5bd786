// Tiles from tensor copies of grouped products of 8-bit numbers with scales: as scaled_gemm/tma.hip, with GROUPED.

#if !defined(GROUPED) || GROUPED == 0
#error "GROUPED must be defined, and not be 0"
#endif

#include "scaled_gemm/tma.hip"
