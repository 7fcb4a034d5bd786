// The lowest column of a row's largest value. A NaN is below all other values; zeros are equal.

#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require

#include "common/elementwise.glsl"

#if !defined(X_STRIDE)
#error "X_STRIDE must be defined, 0 where rows are packed"
#endif

const uint no_column = 0xffffffffu;

// Elements before a row.
uint64_t row_start(uint row, uint cols) {
  return uint64_t(row) * (X_STRIDE > 0 ? uint(X_STRIDE) : cols);
}

// Integers in the order of floats: zeros are equal, and a NaN is below all. Drivers may take denormal
// numbers for zero where they compare floats.
int order(float x) {
  const int bits = floatBitsToInt(x), magnitude = bits & 0x7fffffff;
  return magnitude > 0x7f800000 ? int(0x80000000) : bits < 0 ? -magnitude : bits;
}

struct Candidate {
  int value;    // order() of it
  uint column;  // none where all values were NaN
};

Candidate no_candidate() { return Candidate(int(0x80000000), no_column); }

Candidate merge(Candidate a, Candidate b) {
  if (b.value > a.value || b.value == a.value && b.column < a.column) return b;
  return a;
}

Candidate across(Candidate value, uint mask) {
  return Candidate(subgroupShuffleXor(value.value, mask), subgroupShuffleXor(value.column, mask));
}

#define REDUCED Candidate
#include "common/reduce.glsl"

// Whether comparing a float with others tells which is greater: not if it is denormal, or zero.
bool comparable(float x) { return (floatBitsToUint(x) & 0x7f800000u) != 0u; }

// Of a thread's share of a row's columns from `first` to `end`: it is one of LANES, and takes ITEMS
// vectors at a time. Most of these have nothing better, which takes one look at their largest value.
Candidate scan(uint64_t row, uint lane, uint first, uint end) {
  const uint step = LANES * VEC;
  Candidate best = no_candidate();
  float greatest = 0;  // the value of `best`, where there is one
  for (uint col = first + lane * VEC; col < end; col += ITEMS * step) {
    X_RAW raw[ITEMS];
    [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
      raw[i] = X_RAW(0);
      if (col + i * step < end) raw[i] = load_vector(row + uint64_t(col + i * step) * IN_BYTES);
    }
    float largest = greatest;
    [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
      float e[VEC];
      unpack(raw[i], e);
      [[unroll]] for (uint j = 0; j < VEC; ++j)
        largest = col + i * step < end && e[j] > largest ? e[j] : largest;
    }
    if (!(largest > greatest) && comparable(greatest)) continue;
    if (largest > greatest && comparable(largest)) {
      [[unroll]] for (uint i = 0; i < ITEMS; ++i) {  // from the last one, so that the first remains
        const uint vector = ITEMS - 1 - i;
        float e[VEC];
        unpack(raw[vector], e);
        [[unroll]] for (uint j = 0; j < VEC; ++j)
          if (e[VEC - 1 - j] == largest) best.column = col + vector * step + VEC - 1 - j;
      }
      best.value = order(largest);
      greatest = largest;
      continue;
    }
    [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
      float e[VEC];
      unpack(raw[i], e);
      [[unroll]] for (uint j = 0; j < VEC; ++j) {
        if (col + i * step < end && order(e[j]) > best.value) {
          best = Candidate(order(e[j]), col + i * step + j);
          greatest = e[j];
        }
      }
    }
  }
  return best;
}

int column_of(Candidate best) { return best.column == no_column ? 0 : int(best.column); }
