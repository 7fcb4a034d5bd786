// Few rows: SPLIT blocks take a part of `part` columns of each, whose largest logits are known.
// Each block makes the histogram of its part, and the last one to arrive adds them and draws.

#if !defined(SPLIT) || SPLIT < 2 || SPLIT > THREADS
#error "SPLIT must be defined, at least 2, and at most THREADS"
#endif

#include "common/arrival.hip"
#include "sample/draw.hip"

GRETA_KERNEL(THREADS)
sample_split(const In* GRETA_READ x, const float* GRETA_READ settings, const int* GRETA_READ seeds,
             int* __restrict__ token, const float* GRETA_READ most, u32* histograms, u32* counters,
             u32 rows, u32 cols, u32 part) {
  begin_launch();
  GRETA_SAMPLE_SHARED;
  GRETA_SHARED(u32, before, 1);
  const u32 row = block_index<THREADS>();
  if (row >= rows) return;
  const u32 first = smaller(block_z() * part, cols), end = smaller(first + part, cols);
  Draw draw{{shared, x + row_start(row, cols), cols, settings_of(settings, seeds, row)}};
  float value = float_from_bits(0xff800000U);
  for (u32 i = 0; i < SPLIT; ++i) value = larger(value, most[row * SPLIT + i]);
  draw.begin();
  block_barrier();
  draw.relate_to(value);
  u32* const mine = histograms + u64(row) * SPLIT * BINS;
  if (draw.filtered()) {
    draw.measure(first, end);
    for (u32 i = thread_index(); i < BINS; i += THREADS) {
      mine[block_z() * BINS + i] = shared.count[i];
    }
  }
  if (!last_to_arrive(counters + row, SPLIT, before)) return;
  if (draw.filtered()) {
    for (u32 i = thread_index(); i < BINS; i += THREADS) {
      u32 count = 0;
      for (u32 j = 0; j < SPLIT; ++j) count += mine[j * BINS + i];
      shared.count[i] = count;
    }
    block_barrier();
  }
  const int drawn = draw.token(true);
  if (thread_index() == 0) token[row] = drawn;
}
