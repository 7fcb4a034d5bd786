// With NORM, rows of A are normalised before they are multiplied: x / sqrt(mean(x^2) + epsilon) * weight.
#pragma once

#if !defined(NORM)
#error "NORM must be defined"
#endif

#if NORM
#include "common/inverse_root.hip"
#include "common/in_out.hip"

#define NORM_PARAMETERS , const In *GRETA_READ weight, float epsilon

// What a row is multiplied by, besides the weight; `squares`: the sum of its squares.
GRETA_DEVICE float norm_factor(float squares, u32 k, float epsilon) {
  return fast_inverse_sqrt(squares / float(k) + epsilon);
}
#else
#define NORM_PARAMETERS
#endif
