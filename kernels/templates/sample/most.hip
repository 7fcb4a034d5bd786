// The largest logit of each of SPLIT parts of `part` columns of a row. With HISTORY, the penalties
// of the part's tokens come first.

#if !defined(SPLIT) || SPLIT < 2
#error "SPLIT must be defined, at least 2"
#endif
#if !defined(HISTORY)
#error "HISTORY must be defined, 1 where rows have a history"
#endif

#include "sample/walk.hip"
#if HISTORY
#include "sample/penalty.hip"
#endif

GRETA_KERNEL(THREADS)
#if HISTORY
sample_most(In* x, const float* GRETA_READ penalties, const int* GRETA_READ history, u32* counts,
            float* __restrict__ most, u32 rows, u32 cols, u32 part, u32 length) {
#else
sample_most(const In* GRETA_READ x, float* __restrict__ most, u32 rows, u32 cols, u32 part) {
#endif
  begin_launch_whole();
  GRETA_SHARED(float, maxima, THREADS / wave_size + 1);
  const u32 row = block_index<THREADS>();
  if (row >= rows) return;
  const u32 first = smaller(block_z() * part, cols), end = smaller(first + part, cols);
#if HISTORY
  penalise(x + row_start(row, cols), penalties + u64(row) * 3, history + u64(row) * length,
           counts + u64(row) * cols, length, first, end);
  release_to_device();
  block_barrier();
  acquire_from_device();
#endif
  const float value =
      reduce_threads<THREADS>(largest(x + row_start(row, cols), first, end), Larger{}, maxima);
  if (thread_index() == 0) most[row * SPLIT + block_z()] = value;
}
