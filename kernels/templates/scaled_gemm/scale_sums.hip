// C from the sums of integers that a vendor's library has left: each times the scales of its row and of its column.
// A thread has VEC neighbours of a row.
#include "common/elementwise.hip"
#include "scaled_gemm/numbers.hip"

#if ITEMS != 1 || VEC != 4 || SCALES == 2
#error "a thread has four neighbours, whose sums have no scales of their own"
#endif

GRETA_KERNEL(THREADS)
scaled_gemm_scale_sums(const int* GRETA_READ sums, const float* GRETA_READ scales_a,
                       const float* GRETA_READ scales_b, Out* __restrict__ c, u32 m, u32 n) {
  begin_launch();
  const u32 width = n / VEC;
  const Place place = advance(tile_start<THREADS>(width), thread_index(), width);
  if (place.row >= m) return;
  const u64 at = u64(place.row) * n + place.col * VEC;
  const ScalePair scales{scales_a, scales_b, 1};
  const Words<16> four = load_words<16>(sums + at);
  float x[VEC];
  GRETA_UNROLL
  for (u32 j = 0; j < VEC; ++j) {
    x[j] = float(int(four.word[j])) *
           (scales.of_a(place.row, 0) * scales.of_b(place.col * VEC + j, 0));
  }
  store_floats(c + at, x);
}
