// A row's elements and the settings of its draw.
#pragma once

#include "common/elementwise.hip"
#include "common/reduce.hip"
#include "sample/numbers.hip"

#if !defined(X_STRIDE) || !defined(BINS) || !defined(COPIES) || !defined(LIST)
#error "X_STRIDE (0 where rows are packed), BINS, COPIES and LIST must be defined"
#endif

// A section of a row is read by 32 neighbouring threads.
constexpr u32 section_lanes = 32, sections = THREADS / section_lanes;
static_assert(THREADS % section_lanes == 0, "whole sections");

// Columns from one of a thread's vectors to its next.
constexpr u32 walk_step = section_lanes * VEC;

// Elements before a row.
GRETA_DEVICE u64 row_start(u32 row, u32 cols) {
  return u64(row) * (X_STRIDE > 0 ? u32(X_STRIDE) : cols);
}

// Columns of a section of `cols` columns.
GRETA_DEVICE u32 section_length(u32 cols) {
  return (cols / VEC + sections - 1) / sections * VEC;
}

// visit(element, column, number) for this thread's elements of the columns from `first` to `end`;
// numbers count a round's elements, and end_round(column) ends each, with the column of number 0.
// Backward, a pass begins with what the one before read last, which the second-level cache still
// holds.
template <bool backward = false, typename Visit, typename EndRound>
GRETA_DEVICE void walk_rounds(const In* row, u32 first, u32 end, Visit visit, EndRound end_round) {
  const u32 length = section_length(end - first), lane = thread_index() % section_lanes;
  const u32 from = smaller(first + thread_index() / section_lanes * length, end);
  const u32 to = smaller(from + length, end);
  constexpr u32 round = ITEMS * walk_step;
  const u32 rounds = (to - from + round - 1) / round;
  GRETA_NO_UNROLL
  for (u32 r = 0; r < rounds; ++r) {
    const u32 col = from + lane * VEC + (backward ? rounds - 1 - r : r) * round;
    Vector vector[ITEMS] = {};
    GRETA_UNROLL
    for (u32 i = 0; i < ITEMS; ++i) {
      if (col + i * walk_step < to) vector[i] = load_vector(row + col + i * walk_step);
    }
    GRETA_UNROLL
    for (u32 i = 0; i < ITEMS; ++i) {
      if (col + i * walk_step >= to) break;
      GRETA_UNROLL
      for (int j = 0; j < VEC; ++j) {
        visit(element(vector[i], j), col + i * walk_step + j, i * VEC + j);
      }
    }
    end_round(col);
  }
}

// visit(element, column).
template <bool backward = false, typename Visit>
GRETA_DEVICE void walk(const In* row, u32 first, u32 end, Visit visit) {
  walk_rounds<backward>(
      row, first, end, [&](float x, u32 column, u32) { visit(x, column); }, [](u32) {});
}

// Of this thread's elements; -infinity where all are NaN.
GRETA_DEVICE float largest(const In* row, u32 first, u32 end) {
  float most = float_from_bits(0xff800000U);
  walk<true>(row, first, end, [&](float x, u32) { most = larger(most, x); });
  return most;
}

struct Settings {
  float temperature, top_p;
  u32 top_k;         // 0: off
  u32 least_weight;  // of tokens that min_p keeps
  u64 random;
};

GRETA_DEVICE Settings settings_of(const float* settings, const int* seeds, u32 row) {
  const float* const s = settings + u64(row) * 4;
  const int* const key = seeds + u64(row) * 3;
  Settings result;
  result.temperature = s[0];
  result.top_k = s[1] >= 1 && s[1] < 0x1p31f ? u32(s[1]) : 0;
  result.top_p = s[2];
  const float min_p = s[3] < 1 ? s[3] : 1;  // NaN: 1, which the next line takes for off
  result.least_weight = s[3] > 0 ? u32(min_p * 0x1p29f) : 1;
  if (result.least_weight == 0) result.least_weight = 1;
  result.least_weight = smaller(result.least_weight, full_weight);
  result.random = random_bits(u32(key[0]), u32(key[1]), u32(key[2]));
  return result;
}
