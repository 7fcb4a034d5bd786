// Tiles on vector units of the products of groups: as gemm/tiled.hip, with GROUPED.

#if !defined(GROUPED) || GROUPED == 0
#error "GROUPED must be defined, and not be 0"
#endif

#include "gemm/tiled.hip"
