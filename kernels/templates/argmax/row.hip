// Whole rows: a block takes ROWS of them, each with an equal share of its threads.

#if !defined(ROWS) || ROWS < 1 || THREADS % ROWS != 0
#error "ROWS must be defined, and divides THREADS"
#endif

#include "argmax/scan.hip"

GRETA_KERNEL(THREADS)
argmax_row(const In* GRETA_READ x, int* __restrict__ index, u32 rows, u32 cols) {
  begin_launch();
  GRETA_SHARED(Candidate, shared, THREADS / wave_size + 1);
  constexpr u32 lanes = THREADS / ROWS;
  const u32 row = block_index<THREADS>() * ROWS + thread_index() / lanes;
  const u32 lane = thread_index() % lanes;
  Candidate best = no_candidate();
  if (row < rows) best = scan<lanes>(x + row_start(row, cols), lane, 0, cols);
  best = reduce_threads<lanes>(best, Better{}, shared);
  if (lane == 0 && row < rows) index[row] = column_of(best);
}
