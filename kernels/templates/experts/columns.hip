// Products of lines of a matrix with a vector, bound by reading the matrix once: `lanes` threads
// share a line. With QUANTIZED, matrices are in a format of quantized_gemm, with SCALED in one of
// scaled_gemm.
#pragma once

#if !defined(THREADS) || !defined(UNROLL) || !defined(QUANTIZED) || !defined(SCALED)
#error "THREADS, UNROLL, QUANTIZED and SCALED must be defined"
#endif
#if UNROLL < 1
#error "UNROLL is at least 1"
#endif

#include "common/in_out.hip"
#include "common/reduce.hip"
#include "experts/neighbours.hip"

#if QUANTIZED
#include "experts/quantized_columns.hip"
#elif SCALED
#include "experts/scaled_columns.hip"
#else
#include "experts/dense_columns.hip"
#endif

// Whether an expert takes part in a token's sum: ids of no expert and weights of 0 add nothing, and
// nothing is read for them. A NaN is no 0.
GRETA_DEVICE bool takes_part(u32 expert, u32 experts, float weight) {
  return expert < experts && weight != 0.0f;
}
