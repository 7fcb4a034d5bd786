// Few rows: SPLIT blocks each measure a part of `part` columns of a row and add its histogram to
// the row's. The last one to arrive finds the largest logit, and the range that a pass is to look
// at.

#if !defined(SPLIT) || SPLIT < 2 || SPLIT > THREADS
#error "SPLIT must be defined, at least 2, and at most THREADS"
#endif

#include "common/arrival.hip"
#include "sample/draw.hip"

// `bins`: BINS for each row, 0 before and after. `steps`: for each row the bits of its largest
// logit, the range and what to do with it.
GRETA_KERNEL(THREADS)
sample_measure(const In* __restrict__ x, const float* __restrict__ settings, u32* bins,
               u32* counters, float* most, u32* steps, u32 rows, u32 cols, u32 part) {
  GRETA_SAMPLE_SHARED;
  GRETA_SHARED(float, maxima, waves);
  GRETA_SHARED(u32, before, 1);
  const u32 row = block_index<THREADS>();
  if (row >= rows) return;
  const u32 first = smaller(block_z() * part, cols), end = smaller(first + part, cols);
  Draw draw{{{shared, x + row_start(row, cols), cols, settings_of(settings, row)}}};
  draw.prepare();
  float value = draw.measure(first, end, maxima);
  if (thread_index() == 0) most[row * SPLIT + block_z()] = value;
  bins += u64(row) * BINS;
  const bool filters = draw.filters();
  GRETA_NO_UNROLL
  for (u32 i = thread_index(); filters && i < BINS; i += THREADS) {
    if (shared.count[i] > 0) atomic_add(bins + i, shared.count[i]);
  }
  if (!last_to_arrive(counters + row, SPLIT, before)) return;
  GRETA_NO_UNROLL
  for (u32 i = 0; i < SPLIT; ++i) value = larger(value, most[row * SPLIT + i]);
  GRETA_NO_UNROLL
  for (u32 i = thread_index(); filters && i < BINS; i += THREADS) {
    shared.count[i] = bins[i];
    bins[i] = 0;
  }
  block_barrier();
  draw.relate_to(value);
  Step step = draw.first_step();
  const Bins measured = draw.first_bins();
  if (draw.any && filters && measured.slack > 0) {
    const Found found = draw.narrow(step, measured, draw.first_goal(), 0, false);
    if (found.index == BINS) step = draw.first_step();
  }
  if (thread_index() == 0) {
    u32* const out = steps + u64(row) * 4;
    out[0] = bits_of(value);
    out[1] = step.range.from;
    out[2] = step.range.span;
    out[3] = step.what;
  }
}
