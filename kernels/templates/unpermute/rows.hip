// out is the weighted sum of the rows of y that are at a token's places; a place that y does not have
// adds nothing. A thread takes VEC neighbours of a token, of ITEMS rows at a time.
#if !defined(DIM)
#error "DIM must be defined"
#endif

#include "common/elementwise.hip"

GRETA_KERNEL(THREADS)
unpermute_rows(const In* GRETA_READ y, const int* GRETA_READ places,
               const float* GRETA_READ weights, Out* __restrict__ out, u32 tokens, u32 rows,
               u32 top_k) {
  begin_launch();
  constexpr u32 width = DIM / VEC;
  const Place at = advance(tile_start<THREADS>(width), thread_index(), width);
  if (at.row >= tokens) return;
  const u64 first = u64(at.row) * top_k;
  float sum[VEC] = {};
  GRETA_NO_UNROLL
  for (u32 k = 0; k < top_k; k += ITEMS) {
    Vector vector[ITEMS] = {};
    float weight[ITEMS] = {};
    GRETA_UNROLL
    for (u32 i = 0; i < ITEMS; ++i) {
      const u32 row = k + i < top_k ? u32(places[first + k + i]) : rows;
      if (row >= rows) continue;
      vector[i] = load_vector(y + u64(row) * DIM + at.col * VEC);
      weight[i] = weights[first + k + i];
    }
    GRETA_UNROLL
    for (u32 i = 0; i < ITEMS; ++i) {
      GRETA_UNROLL
      for (int j = 0; j < VEC; ++j) {
        sum[j] = multiply_add(weight[i], element(vector[i], j), sum[j]);
      }
    }
  }
  store_floats(out + u64(at.row) * DIM + at.col * VEC, sum);
}
