// Few long rows: SPLIT blocks take a part of `part` columns of each, and the last one to arrive
// compares what they found.

#if !defined(SPLIT) || SPLIT < 2 || SPLIT > THREADS
#error "SPLIT must be defined, at least 2, and at most THREADS"
#endif

#include "argmax/scan.hip"
#include "common/arrival.hip"

GRETA_KERNEL(THREADS)
argmax_split(const In* GRETA_READ x, int* __restrict__ index, Candidate* partial, u32* counters,
             u32 rows, u32 cols, u32 part) {
  begin_launch();
  GRETA_SHARED(Candidate, shared, THREADS / wave_size + 1);
  GRETA_SHARED(u32, before, 1);
  const u32 row = block_index<THREADS>();
  if (row >= rows) return;
  const u32 first = smaller(block_z() * part, cols), end = smaller(first + part, cols);
  Candidate best = scan<THREADS>(x + row_start(row, cols), thread_index(), first, end);
  best = reduce_threads<THREADS>(best, Better{}, shared);
  Candidate* const found = partial + u64(row) * SPLIT;
  if (thread_index() == 0) found[block_z()] = best;
  if (!last_to_arrive(counters + row, SPLIT, before)) return;
  best = thread_index() < SPLIT ? found[thread_index()] : no_candidate();
  best = reduce_threads<THREADS>(best, Better{}, shared);
  if (thread_index() == 0) index[row] = column_of(best);
}
