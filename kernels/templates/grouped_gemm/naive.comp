#version 460
// One thread for each element of the products of groups: as gemm/naive.comp, with GROUPED.

#if !defined(GROUPED) || GROUPED == 0
#error "GROUPED must be defined, and not be 0"
#endif

#include "gemm/naive.comp"
