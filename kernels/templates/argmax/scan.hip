// The lowest column of a row's largest value. A NaN is below all other values; zeros are equal.
#pragma once

#include "common/elementwise.hip"
#include "common/reduce.hip"

#if !defined(X_STRIDE)
#error "X_STRIDE must be defined, 0 where rows are packed"
#endif

constexpr u32 no_column = 0xffffffffU;

// Elements before a row.
GRETA_DEVICE u64 row_start(u32 row, u32 cols) {
  return u64(row) * (X_STRIDE > 0 ? u32(X_STRIDE) : cols);
}

struct Candidate {
  float value;  // -infinity where there is no column
  u32 column;   // none where all values were NaN
};

// What reductions need to pass a candidate from lane to lane.
template <typename F>
GRETA_DEVICE Candidate each_word(Candidate c, F f) {
  return {f(c.value), f(c.column)};
}

struct Better {
  GRETA_DEVICE Candidate operator()(Candidate a, Candidate b) const {
    return b.value > a.value || (b.value == a.value && b.column < a.column) ? b : a;
  }
};

GRETA_DEVICE Candidate no_candidate() { return {float_from_bits(0xff800000U), no_column}; }

GRETA_DEVICE bool is_nan(float x) { return (bits_of(x) & 0x7fffffffU) > 0x7f800000U; }

// Of a thread's share of a row's columns from `first` to `end`: it is one of `lanes`, and takes ITEMS
// vectors at a time. Most of these have nothing better, which takes one look at their largest value.
template <u32 lanes>
GRETA_DEVICE Candidate scan(const In* row, u32 lane, u32 first, u32 end) {
  constexpr u32 step = lanes * VEC;
  Candidate best = no_candidate();
  GRETA_NO_UNROLL
  for (u32 col = first + lane * VEC; col < end; col += ITEMS * step) {
    Vector vector[ITEMS] = {};
    GRETA_UNROLL
    for (u32 i = 0; i < ITEMS; ++i) {
      if (col + i * step < end) vector[i] = load_vector(row + col + i * step);
    }
    float largest = best.value;
    GRETA_UNROLL
    for (u32 i = 0; i < ITEMS; ++i) {
      GRETA_UNROLL
      for (int j = 0; j < VEC; ++j) {
        const float x = element(vector[i], j);
        if (col + i * step < end && x > largest) largest = x;
      }
    }
    if (!(largest > best.value) && best.column != no_column) continue;
    GRETA_UNROLL
    for (u32 i = 0; i < ITEMS; ++i) {
      GRETA_UNROLL
      for (int j = 0; j < VEC; ++j) {
        const float x = element(vector[i], j);
        const bool better = x > best.value || (best.column == no_column && !is_nan(x));
        if (col + i * step < end && better) best = {x, col + i * step + j};
      }
    }
  }
  return best;
}

GRETA_DEVICE int column_of(Candidate best) { return best.column == no_column ? 0 : int(best.column); }
