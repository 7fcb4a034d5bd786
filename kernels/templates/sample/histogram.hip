// The distances of a row's tokens to its largest logit, and histograms of them. The first one is
// made before the largest logit is known: its bins are relative to an origin above the largest of a
// few logits. Bounds of the rounding of both distances make a bin one of distances to the largest
// logit.
#pragma once

#include "sample/scan.hip"
#include "sample/walk.hip"

// Returns the old value.
GRETA_DEVICE u32 add_shared(u32* place, u32 value) {
#if defined(GRETA_AMD)
  return __hip_atomic_fetch_add(place, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
#elif defined(GRETA_NVIDIA)
  return atomicAdd(place, value);
#else
  return __atomic_fetch_add(place, value, __ATOMIC_RELAXED);
#endif
}

GRETA_DEVICE void add_mass(u32* low, u32* high, u64 mass) {
  const u32 lower = u32(mass);
  u32 upper = u32(mass >> 32);
  if (lower != 0 && add_shared(low, lower) > 0xffffffffU - lower) ++upper;
  if (upper != 0) add_shared(high, upper);
}

// The largest number of sections of a row: those that the threads read, or the parts of blocks.
#if defined(SPLIT)
constexpr u32 most_sections = sections > SPLIT ? sections : SPLIT;
#else
constexpr u32 most_sections = sections;
#endif

// Where a search ended: an index, and what is left of a draw or before the index.
struct Found {
  u32 index, count;
  u64 mass;
};

// What a pass has found: masses of the row and of what is nearer than the range, and the number of
// the latter, or of ties.
struct Totals {
  u64 row, nearer;
  u32 count;
};

struct Shared {
  u32* count;                   // of bins, COPIES times
  u32 *list_far, *list_column;  // LIST of each
  u32* listed;                  // the number of tokens for the list, which may exceed LIST
  u32 *part_low, *part_high, *part_ties;  // `most_sections` of each: masses, and ties
  Sums* sums;                             // of waves
  Found* found;                           // two
  Totals* totals;
};

#define GRETA_SAMPLE_SHARED                                                                      \
  GRETA_SHARED(u32, bins_count, BINS* COPIES);                                                   \
  GRETA_SHARED(u32, list_far, LIST);                                                             \
  GRETA_SHARED(u32, list_column, LIST);                                                          \
  GRETA_SHARED(u32, part_low, most_sections);                                                    \
  GRETA_SHARED(u32, part_high, most_sections);                                                   \
  GRETA_SHARED(u32, part_ties, most_sections);                                                   \
  GRETA_SHARED(u32, listed, 1);                                                                  \
  GRETA_SHARED(Sums, wave_sums, waves + 1);                                                      \
  GRETA_SHARED(Found, found, 2);                                                                 \
  GRETA_SHARED(Totals, totals, 1);                                                               \
  const Shared shared {                                                                          \
    bins_count, list_far, list_column, listed, part_low, part_high, part_ties, wave_sums, found, \
        totals                                                                                   \
  }

// Distances from `from` to from + span - 1.
struct Range {
  u32 from, span;
  GRETA_DEVICE u32 end() const { return from + span; }
};

// Bin i has tokens of distances from `from` + (i << shift) to those of bin i + 1, within `slack`.
// The first bin also has all nearer ones, the last one all farther ones.
struct Bins {
  int from;
  u32 shift, slack;
};

constexpr u32 octave = 1U << 24;

struct Histogram {
  const Shared& s;
  const In* x;
  u32 cols;
  Settings settings;
  float most = 0, scale = 0, origin = 0;
  u32 beyond = farthest;  // the least distance at which tokens have no probability
  bool greedy = false, any = false;

  GRETA_DEVICE void prepare() {
    greedy = !(settings.temperature > 0x1p-64f);
    // 2^24 / ln 2 / temperature; at temperature 0, all but the largest are farthest.
    scale = greedy ? float_from_bits(0x7f800000U) : divide(0x1.715476p+24f, settings.temperature);
    if (settings.top_k >= cols) settings.top_k = 0;
    if (settings.least_weight <= 1) return;
    u32 kept = 0;
    GRETA_NO_UNROLL
    while (kept + 1 < beyond) {
      const u32 middle = (kept + beyond) / 2;
      if (weight_at(middle) < settings.least_weight) {
        beyond = middle;
      } else {
        kept = middle;
      }
    }
  }

  GRETA_DEVICE void relate_to(float largest) {
    most = largest;
    any = largest > float_from_bits(0xff800000U);
  }

  GRETA_DEVICE bool filters() const {
    return !greedy && (settings.top_k > 0 || settings.top_p < 1);
  }

  // Without FMA: no product is added to. A NaN is farthest.
  GRETA_DEVICE u32 distance(float value) const {
    const float far = value == most ? 0 : (most - value) * scale;
    return u32(-larger(-far, -float(farthest)));
  }

  // 0 where the token has no probability.
  GRETA_DEVICE u32 weight(u32 far) const { return far < beyond ? weight_at(far) : 0; }

  GRETA_DEVICE static u32 shift_of(u32 span) {
    u32 shift = 0;
    GRETA_NO_UNROLL
    while (u64(BINS) << shift < span) ++shift;
    return shift;
  }

  // Bins of a range; those of all distances have 16 octaves.
  GRETA_DEVICE static Bins bins_of(Range range) {
    return {int(range.from), shift_of(smaller(range.span, 16 * octave)), 0};
  }

  // The bins of the first histogram: 4 octaves of logits above those that the origin is made of,
  // and up to 12 below.
  GRETA_DEVICE u32 first_shift() const {
    return shift_of(smaller(beyond, 12 * octave) + 4 * octave);
  }

  // Their distances to the largest logit. A distance to the origin and one to the largest logit
  // have two roundings each, below 2^29 and within 2^-24 of themselves, and so has what is between
  // both. No slack: there are none, as the origin is not near the largest logit.
  GRETA_DEVICE Bins first_bins() const {
    const float moved = (most - origin) * scale;
    const bool near = moved > -0x1p28f && moved < 0x1p28f;
    const u32 shift = first_shift();
    return {near ? int(moved) - int(1U << shift >> 1) : 0, shift, near ? 256U : 0U};
  }

  GRETA_DEVICE void clear_bins() const {
    GRETA_NO_UNROLL
    for (u32 i = thread_index(); i < BINS * COPIES; i += THREADS) s.count[i] = 0;
    block_barrier();
  }

  GRETA_DEVICE void count_in(u32 bin, u32 tokens = 1) const {
    add_shared(s.count + bin * COPIES + thread_index() % COPIES, tokens);
  }

  // Leaves the sums of the copies in the first BINS places.
  GRETA_DEVICE void merge_bins() const {
    block_barrier();
    if constexpr (COPIES > 1) {
      u32 count[(BINS + THREADS - 1) / THREADS];
      GRETA_UNROLL
      for (u32 k = 0; k < (BINS + THREADS - 1) / THREADS; ++k) {
        count[k] = 0;
        const u32 bin = thread_index() + k * THREADS;
        for (u32 copy = bin * COPIES; bin < BINS && copy < (bin + 1) * COPIES; ++copy)
          count[k] += s.count[copy];
      }
      block_barrier();
      GRETA_UNROLL
      for (u32 k = 0; k < (BINS + THREADS - 1) / THREADS; ++k) {
        const u32 bin = thread_index() + k * THREADS;
        if (bin < BINS) s.count[bin] = count[k];
      }
      block_barrier();
    }
  }

  // Of a vector of each thread, which are spread over the row: equal in all blocks of the row.
  GRETA_DEVICE float largest_of_some() const {
    const u32 vectors = cols / VEC, each = (vectors + THREADS - 1) / THREADS;
    float some = float_from_bits(0xff800000U);
    if (thread_index() * each >= vectors) return some;
    const Vector vector = load_vector(x + thread_index() * each * VEC);
    GRETA_UNROLL
    for (int j = 0; j < VEC; ++j) some = larger(some, element(vector, j));
    return some;
  }

  // The largest logit of a part of the row, for all threads, and if the draw filters, the histogram
  // of the part. `maxima`: one for each wave.
  GRETA_DEVICE float measure(u32 first, u32 end, float* maxima) {
    const bool counts = filters();
    float bins = float_from_bits(0x7fc00000U);  // NaN: no token has a bin
    if (counts) {
      origin = reduce_threads<THREADS>(largest_of_some(), Larger{}, maxima) +
               settings.temperature * 2.7725887f;  // 4 ln 2: 4 octaves
      bins = scale * float_from_bits(127 - first_shift() << 23);
      clear_bins();
    }
    constexpr float integers = 0x1p23f;  // a sum of it is rounded to an integer
    u32 rest = 0;                        // NaN, and those that are farther than all bins but one
    float value_most = float_from_bits(0xff800000U);
    const auto visit = [&](float value, u32) {
      value_most = larger(value_most, value);
      const float bin = (origin - value) * bins;
      if (bin < float(BINS - 1)) {
        count_in(bits_of(larger(bin, 0) + integers) - bits_of(integers));
      } else {
        ++rest;
      }
    };
    walk(x, first, end, visit, [](u32) {});
    if (counts) {
      if (rest > 0) count_in(BINS - 1, rest);
      merge_bins();
    }
    return reduce_threads<THREADS>(value_most, Larger{}, maxima);
  }
};
