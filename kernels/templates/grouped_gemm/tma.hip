// Tiles of the products of groups from tensor copies: as gemm/tma.hip, with GROUPED.

#if !defined(GROUPED) || GROUPED == 0
#error "GROUPED must be defined, and not be 0"
#endif

#include "gemm/tma.hip"
