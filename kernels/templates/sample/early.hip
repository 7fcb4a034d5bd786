// A block takes a row, and reads it twice before the draw. The first pass finds the largest logit
// and makes a histogram at once: its bins are relative to an origin above the largest of some
// logits. Where the bounds of these bins do not determine the border, the row is counted again.

#include "sample/draw.hip"

// Added to a number of less than half its size, it leaves the nearest integer in the lower bits.
constexpr float rounder = 0x1.8p23f;

// Bins above the largest one of some logits: four octaves.
constexpr u32 margin = BINS / 4;

struct EarlyDraw : Draw {
  // The largest of a thread's first vector.
  GRETA_DEVICE static float largest_of_vector(const In* x, u32 cols) {
    const u32 length = section_length(cols), lane = thread_index() % section_lanes;
    const u32 from = thread_index() / section_lanes * length, col = from + lane * VEC;
    float seen = float_from_bits(0xff800000U);
    if (col < smaller(from + length, cols)) {
      const Vector vector = load_vector(x + col);
      GRETA_UNROLL
      for (int j = 0; j < VEC; ++j) seen = larger(seen, element(vector, j));
    }
    return seen;
  }

  // Leaves the histogram of the row, of which `early` tells the kind. `some`: the largest of a
  // vector of each thread.
  GRETA_DEVICE void measure_row(float some, float* maxima) {
    begin();
    s.zero_bins();
    if (!filters()) {
      const float own = largest(x, 0, cols);
      block_barrier();
      return relate_to(reduce_threads<THREADS>(own, Larger{}, maxima));
    }
    constexpr u32 shift = early_shift;
    const float step = scale / float(1U << shift);
    const float seen = reduce_threads<THREADS>(some, Larger{}, maxima) * step;
    if (waves == 1) block_barrier();  // which a reduction over several waves has
    // With a smaller scale, logits whose difference is no number in f32, and which have no
    // probability therefore, may lie in a bin.
    constexpr float least_scale = 0x1p-90f;
    const bool near_zero = scale >= least_scale && seen > -0x1p21f && seen < 0x1p21f;
    // Bin and fraction of a logit v: origin - step v - rounder.
    const float origin = rounder + (seen + float(margin));
    float own = float_from_bits(0xff800000U);
    if (near_zero) {
      u32* const count = s.count + thread_index() % COPIES;
      walk(x, 0, cols, [&](float value, u32) {
        own = larger(own, value);
        const float place = multiply_add(value, -step, origin);
        // Also of a NaN.
        const float bin = larger(lesser(place, rounder + float(BINS - 1)), rounder);
        add_shared(count + (bits_of(bin) - bits_of(rounder)) * COPIES, 1);
      });
    } else {
      own = largest(x, 0, cols);
    }
    relate_to(reduce_threads<THREADS>(own, Larger{}, maxima + waves));
    merge_bins();
    // What has no bin is in the last one, of which this thread has the sums.
    if (thread_index() == (BINS - 1) / own_bins) s.count[BINS - 1] = 0;
    const float place = multiply_add(most, -step, origin);
    early = near_zero && place > rounder - float(BINS);
    if (early) {
      const float rest = multiply_add(most, -step, origin - place);
      start = -(int(place - rounder) * (1 << shift)) - int((rest + 0.5f) * float(1U << shift));
    } else if (filtered()) {
      measure(0, cols);
    }
  }
};

GRETA_KERNEL(THREADS)
sample_early(const In* GRETA_READ x, const float* GRETA_READ settings, const int* GRETA_READ seeds,
             int* __restrict__ token, u32 rows, u32 cols) {
  begin_launch();
  GRETA_SAMPLE_SHARED;
  const u32 row = block_index<THREADS>();
  if (row >= rows) return;
  const In* const own = x + row_start(row, cols);
  // Loaded at the same time as the settings.
  const float some = EarlyDraw::largest_of_vector(own, cols);
  EarlyDraw draw{{{shared, own, cols, settings_of(settings, seeds, row)}}};
  draw.measure_row(some, maxima);
  const int drawn = draw.token(true);
  if (thread_index() == 0) token[row] = drawn;
}
