// The largest logit of each of SPLIT parts of `part` columns of a row.

#if !defined(SPLIT) || SPLIT < 2
#error "SPLIT must be defined, at least 2"
#endif

#include "sample/walk.hip"

GRETA_KERNEL(THREADS)
sample_most(const In* __restrict__ x, float* __restrict__ most, u32 rows, u32 cols, u32 part) {
  begin_launch();
  GRETA_SHARED(float, maxima, THREADS / wave_size + 1);
  const u32 row = block_index<THREADS>();
  if (row >= rows) return;
  const u32 first = smaller(block_z() * part, cols), end = smaller(first + part, cols);
  const float value =
      reduce_threads<THREADS>(largest(x + row_start(row, cols), first, end), Larger{}, maxima);
  if (thread_index() == 0) most[row * SPLIT + block_z()] = value;
}
