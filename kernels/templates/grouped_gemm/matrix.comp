#version 460
// Tiles on matrix cores of the products of groups: as gemm/matrix.comp, with GROUPED.

#if !defined(GROUPED) || GROUPED == 0
#error "GROUPED must be defined, and not be 0"
#endif

#include "gemm/matrix.comp"
