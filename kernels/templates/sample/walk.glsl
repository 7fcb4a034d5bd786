// A row's elements and the settings of its draw.
#pragma once

#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require

#include "common/elementwise.glsl"

#define LANES THREADS
#define REDUCED int
int merge(int a, int b) { return max(a, b); }
int across(int value, uint mask) { return subgroupShuffleXor(value, mask); }
#include "common/reduce.glsl"
#include "sample/numbers.glsl"

#if !defined(X_STRIDE) || !defined(BINS) || !defined(COPIES) || !defined(LIST)
#error "X_STRIDE (0 where rows are packed), BINS, COPIES and LIST must be defined"
#endif

// A section of a row is read by 32 neighbouring threads.
#define SECTION_LANES 32
#define SECTIONS (THREADS / SECTION_LANES)

// Elements before a row.
uint64_t row_start(uint row, uint cols) {
  return uint64_t(row) * (X_STRIDE > 0 ? uint(X_STRIDE) : cols);
}

// Columns of a section of `cols` columns.
uint section_length(uint cols) { return (cols / VEC + SECTIONS - 1) / SECTIONS * VEC; }

// VISIT(element, column) for this thread's elements of the columns from FIRST to END. BACKWARD, a pass
// begins with what the one before read last, which the second-level cache still holds.
#define WALK(ROW, FIRST, END, BACKWARD, VISIT)                                                            \
  {                                                                                             \
    const uint walk_length = section_length((END) - (FIRST));                                   \
    const uint walk_from = min((FIRST) + thread_index() / SECTION_LANES * walk_length, END);    \
    const uint walk_to = min(walk_from + walk_length, END);                                     \
    const uint walk_step = SECTION_LANES * VEC;                                                 \
    const uint walk_rounds = (walk_to - walk_from + ITEMS * walk_step - 1) / (ITEMS * walk_step);\
    for (uint r = 0; r < walk_rounds; ++r) {                                                    \
      const uint walk = walk_from + thread_index() % SECTION_LANES * VEC +                      \
                        (BACKWARD ? walk_rounds - 1 - r : r) * (ITEMS * walk_step);             \
      X_RAW raw[ITEMS];                                                                         \
      [[unroll]] for (uint i = 0; i < ITEMS; ++i) {                                             \
        raw[i] = X_RAW(0);                                                                      \
        if (walk + i * walk_step < walk_to)                                                     \
          raw[i] = load_vector((ROW) + uint64_t(walk + i * walk_step) * IN_BYTES);              \
      }                                                                                         \
      [[unroll]] for (uint i = 0; i < ITEMS; ++i) {                                             \
        float e[VEC];                                                                           \
        unpack(raw[i], e);                                                                      \
        [[unroll]] for (uint j = 0; j < VEC; ++j) {                                             \
          if (walk + i * walk_step < walk_to) VISIT(e[j], walk + i * walk_step + j)             \
        }                                                                                       \
      }                                                                                         \
    }                                                                                           \
  }

// Integers in the order of floats: zeros are equal, and a NaN is below all. Drivers may take denormal
// numbers for zero where they compare floats.
const int below_all = int(0x80000000);
int order(float x) {
  const int bits = floatBitsToInt(x), magnitude = bits & 0x7fffffff;
  return magnitude > 0x7f800000 ? below_all : bits < 0 ? -magnitude : bits;
}
float in_order(int place) { return intBitsToFloat(place < 0 ? -place | below_all : place); }
const int minus_infinity = -0x7f800000;

// Of this thread's elements; below_all where all are NaN.
int largest(uint64_t row, uint first, uint end) {
  int most = below_all;
#define VISIT_LARGEST(value, column) most = max(most, order(value));
  WALK(row, first, end, false, VISIT_LARGEST)
  return most;
}

struct Settings {
  float temperature, top_p;
  uint top_k;         // 0: off
  uint least_weight;  // of tokens that min_p keeps
  uint64_t random;
};

Settings settings_of(uint64_t settings, uint64_t seeds, uint row) {
  const uint64_t at = settings + uint64_t(row) * 16, key = seeds + uint64_t(row) * 12;
  const float top_k = F32(at + 4).v, min_p = F32(at + 12).v;
  Settings s;
  s.temperature = F32(at).v;
  s.top_k = top_k >= 1.0 && top_k < 2147483648.0 ? uint(top_k) : 0;
  s.top_p = F32(at + 8).v;
  s.least_weight = 1;
  if (min_p > 0.0) s.least_weight = clamp(uint((min_p < 1.0 ? min_p : 1.0) * 536870912.0), 1u, full_weight);
  s.random = random_bits(uint(I32(key).v), uint(I32(key + 4).v), uint(I32(key + 8).v));
  return s;
}
