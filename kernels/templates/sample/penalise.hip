// A block changes the logits of the tokens in its row's history, in place.

#if !defined(X_STRIDE) || !defined(THREADS)
#error "X_STRIDE (0 where rows are packed) and THREADS must be defined"
#endif

#include "sample/penalty.hip"

GRETA_KERNEL(THREADS)
sample_penalise(In* GRETA_READ x, const float* GRETA_READ penalties, const int* GRETA_READ history,
                u32* counts, u32 rows, u32 cols, u32 length) {
  begin_launch_whole();
  const u32 row = block_index<THREADS>();
  if (row >= rows) return;
  penalise(x + u64(row) * (X_STRIDE > 0 ? u32(X_STRIDE) : cols), penalties + u64(row) * 3,
           history + u64(row) * length, counts + u64(row) * cols, length, 0, cols);
}
