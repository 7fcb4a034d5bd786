// A block takes a row: its largest logit and a histogram in one pass, and the draw.

#include "sample/draw.hip"

GRETA_KERNEL(THREADS)
sample_row(const In* __restrict__ x, const float* __restrict__ settings,
           const int* __restrict__ seeds, int* __restrict__ token, u32 rows, u32 cols) {
  GRETA_SAMPLE_SHARED;
  GRETA_SHARED(float, maxima, waves);
  const u32 row = block_index<THREADS>();
  if (row >= rows) return;
  Draw draw{{{shared, x + row_start(row, cols), cols, settings_of(settings, row)}}};
  draw.prepare();
  draw.relate_to(draw.measure(0, cols, maxima));
  const int drawn =
      draw.token(draw.filters() ? histogram : step_only, draw.first_step(), seeds, row);
  if (thread_index() == 0) token[row] = drawn;
}
