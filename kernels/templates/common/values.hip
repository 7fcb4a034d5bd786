// Numbers that a thread holds of a row: ITEMS vectors of VEC neighbours.
#pragma once

#if !defined(SURE)
#error "SURE must be defined: the first vectors that need no test whether they lie inside a row"
#endif

#include "common/elementwise.hip"
#include "common/reduce.hip"

typedef float Values[ITEMS][VEC];

GRETA_DEVICE float sum_of_squares(const Values& x) {
  float part[1][VEC];
  GRETA_UNROLL
  for (u32 j = 0; j < VEC; ++j) {
    part[0][j] = x[0][j] * x[0][j];
    GRETA_UNROLL
    for (u32 i = 1; i < ITEMS; ++i) part[0][j] = multiply_add(x[i][j], x[i][j], part[0][j]);
  }
  return reduce_values(part, Add{});
}

// Whether the i-th of a thread's vectors is one of the `have` that lie inside.
GRETA_DEVICE bool lies_before(u32 i, u32 have) { return i < SURE || i < have; }
