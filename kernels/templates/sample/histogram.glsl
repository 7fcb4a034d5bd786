// The distances of a row's tokens to its largest logit, and histograms of them. The first one is made
// before the largest logit is known: its bins are relative to an origin above the largest of a few
// logits. Bounds of the rounding of both distances make a bin one of distances to the largest logit.
#pragma once

#include "sample/walk.glsl"

shared uint bins_count[BINS * COPIES];

// Distances from `from` to from + span - 1.
struct Range {
  uint from, span;
};

uint end_of(Range range) { return range.from + range.span; }

// Bin i has tokens of distances from `from` + (i << shift) to those of bin i + 1, within `slack`. The
// first bin also has all nearer ones, the last one all farther ones.
struct Bins {
  int from;
  uint shift, slack;
};

const uint octave = 1u << 24;

// The row that the workgroup draws from.
uint64_t x;
uint cols;
Settings settings;
float most, scale, origin;
int most_order;
uint beyond;  // the least distance at which tokens have no probability
bool greedy, any;

void begin(uint64_t row, uint length, Settings with) {
  x = row;
  cols = length;
  settings = with;
  greedy = !(settings.temperature > 5.421010862427522e-20);  // 2^-64
  scale = 0.0;
  origin = 0.0;
  // 2^24 / ln 2 / temperature
  if (!greedy) scale = divide(uintBitsToFloat(0x4bb8aa3bu), settings.temperature);
  if (settings.top_k >= cols) settings.top_k = 0;
  beyond = farthest;
  if (settings.least_weight <= 1) return;
  uint kept = 0;
  while (kept + 1 < beyond) {
    const uint middle = (kept + beyond) / 2;
    if (weight_at(middle) < settings.least_weight) {
      beyond = middle;
    } else {
      kept = middle;
    }
  }
}

void relate_to(int largest_order) {
  most_order = largest_order;
  most = in_order(largest_order);
  any = largest_order > minus_infinity;
}

bool filters() { return !greedy && (settings.top_k > 0 || settings.top_p < 1.0); }

// Without FMA: no product is added to.
uint distance_of(float value) {
  if (order(value) == most_order) return 0;
  precise const float difference = most - value;
  precise const float far = difference * scale;
  return !greedy && far < float(farthest) ? uint(far) : farthest;
}

// 0 where the token has no probability.
uint weight_of(uint far) { return far < beyond ? weight_at(far) : 0; }

uint shift_of(uint span) {
  uint shift = 0;
  while (uint64_t(BINS) << shift < span) ++shift;
  return shift;
}

// Bins of a range; those of all distances have 16 octaves.
Bins bins_of(Range range) {
  return Bins(int(range.from), shift_of(min(range.span, 16 * octave)), 0);
}

// The bins of the first histogram: 4 octaves of logits above those that the origin is made of, and up
// to 12 below.
uint first_shift() { return shift_of(min(beyond, 12 * octave) + 4 * octave); }

// Their distances to the largest logit. A distance to the origin and one to the largest logit have two
// roundings each, below 2^29 and within 2^-24 of themselves, and so has what is between both. No
// slack: there are none, as the origin is not near the largest logit.
Bins first_bins() {
  precise const float difference = most - origin;
  precise const float moved = difference * scale;
  const uint shift = first_shift();
  if (!(moved > -268435456.0 && moved < 268435456.0)) return Bins(0, shift, 0);  // 2^28
  return Bins(int(moved) - int(1u << shift >> 1), shift, 256);
}

void clear_bins() {
  for (uint i = thread_index(); i < BINS * COPIES; i += THREADS) bins_count[i] = 0;
  barrier();
}

void count_tokens(uint bin, uint tokens) {
  atomicAdd(bins_count[bin * COPIES + thread_index() % COPIES], tokens);
}

// The last bin of a range has what is left.
void count_in(uint inside, uint shift) { count_tokens(min(inside >> shift, uint(BINS - 1)), 1); }

// Leaves the sums of the copies in the first BINS places.
void merge_bins() {
  barrier();
#if COPIES > 1
  const uint turns = (BINS + THREADS - 1) / THREADS;
  uint count[turns];
  for (uint k = 0; k < turns; ++k) {
    count[k] = 0;
    const uint bin = thread_index() + k * THREADS;
    for (uint copy = bin * COPIES; bin < BINS && copy < (bin + 1) * COPIES; ++copy)
      count[k] += bins_count[copy];
  }
  barrier();
  for (uint k = 0; k < turns; ++k) {
    const uint bin = thread_index() + k * THREADS;
    if (bin < BINS) bins_count[bin] = count[k];
  }
  barrier();
#endif
}

// Of a vector of each thread, which are spread over the row: equal in all workgroups of the row.
int largest_of_some() {
  const uint vectors = cols / VEC, each = (vectors + THREADS - 1) / THREADS;
  int some = below_all;
  if (thread_index() * each >= vectors) return some;
  float e[VEC];
  unpack(load_vector(x + uint64_t(thread_index() * each * VEC) * IN_BYTES), e);
  [[unroll]] for (uint j = 0; j < VEC; ++j) some = max(some, order(e[j]));
  return some;
}

// The largest logit of a part of the row, in its order and for all threads, and if the draw filters,
// the histogram of the part.
int measure(uint first, uint end) {
  const bool counts = filters();
  float bins = 0.0;
  if (counts) {
    origin = in_order(reduce_threads(largest_of_some(), 0)) +
             settings.temperature * 2.7725887;  // 4 ln 2: 4 octaves
    bins = scale * uintBitsToFloat(127 - first_shift() << 23);
    clear_bins();
  }
  uint rest = 0;  // NaN, and those that are farther than all bins but one
  int value_most = below_all;
#define VISIT_BIN(value, column)                                      \
  {                                                                   \
    const int place = order(value);                                   \
    value_most = max(value_most, place);                              \
    precise const float difference = origin - value;                  \
    precise const float bin = difference * bins;                      \
    if (counts && place != below_all && bin < float(BINS - 1)) {      \
      count_tokens(bin > 0.0 ? uint(bin + 0.5) : 0, 1);               \
    } else {                                                          \
      ++rest;                                                         \
    }                                                                 \
  }
  WALK(x, first, end, false, VISIT_BIN)
  if (counts) {
    if (rest > 0) count_tokens(BINS - 1, rest);
    merge_bins();
  }
  return reduce_threads(value_most, 1);
}
