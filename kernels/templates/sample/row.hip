// A block takes a row: its largest logit, a histogram of distances to it, and the draw.

#include "sample/draw.hip"

GRETA_KERNEL(THREADS)
sample_row(const In* GRETA_READ x, const float* GRETA_READ settings, const int* GRETA_READ seeds,
           int* __restrict__ token, u32 rows, u32 cols) {
  begin_launch();
  GRETA_SAMPLE_SHARED;
  const u32 row = block_index<THREADS>();
  if (row >= rows) return;
  Draw draw{{shared, x + row_start(row, cols), cols, settings_of(settings, seeds, row)}};
  draw.begin();
  block_barrier();
  draw.relate_to(reduce_threads<THREADS>(largest(draw.x, 0, cols), Larger{}, maxima));
  if (draw.filtered()) draw.measure(0, cols);
  const int drawn = draw.token(true);
  if (thread_index() == 0) token[row] = drawn;
}
