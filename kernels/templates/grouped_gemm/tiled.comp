#version 460
// Tiles on vector units of the products of groups: as gemm/tiled.comp, with GROUPED.

#if !defined(GROUPED) || GROUPED == 0
#error "GROUPED must be defined, and not be 0"
#endif

#include "gemm/tiled.comp"
