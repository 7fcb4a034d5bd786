// Workgroups that share rows of queries and divide their keys into slices, of which there are up to
// SPLIT. Each leaves its sums in the workspace; the last one to arrive joins them, slice by slice
// whatever the order of arrival. A reader is what the slices of the same rows are together; it has up
// to SLICE_ROWS rows. Who includes this has SLICE_FLOATS floats of shared memory for the join, and
// says what becomes of joined sums.
#pragma once

#if !defined(SPLIT) || !defined(SLICE_ROWS) || !defined(THREADS)
#error "SPLIT SLICE_ROWS and THREADS must be defined"
#endif

#include "attention/operands.glsl"
#include "common/arrival.glsl"

#define SLICE_FLOATS (3 * SPLIT * SLICE_ROWS)
float join_float(uint i);              // of SLICE_FLOATS
void set_join_float(uint i, float x);
// `x` is the sum of values in dimension d, each times a power of two, and `sum` that of the powers,
// relative to the greatest exponent.
void put_joined(uint row, uint d, float x, float greatest, float sum);

layout(buffer_reference, std430, buffer_reference_align = 4) coherent buffer Partial { float v; };
layout(buffer_reference, std430, buffer_reference_align = 8) coherent buffer Partial2 { vec2 v; };

// A row's sums of one slice: of values, then the greatest score and the sum of exponentials. Without
// keys these are LOWEST_SCORE and 0.
uint64_t slice_sums(uint reader, uint slice, uint row) {
  return args.partial +
         ((uint64_t(reader) * SPLIT + slice) * SLICE_ROWS + row) * ((V_DIM + 2) * 4);
}

// Slices whose loads are in flight together.
#if SPLIT < 16
#define SLICES_TOGETHER SPLIT
#else
#define SLICES_TOGETHER 16
#endif

#define GREATEST 0
#define SUM (SLICE_ROWS * SPLIT)
#define WEIGHT (2 * SLICE_ROWS * SPLIT)

// Joins `count` slices of the first `own` rows.
void join_slices(uint tid, uint reader, uint count, uint own) {
  [[dont_unroll]] for (uint i = tid; i < own * count; i += THREADS) {
    const uint64_t from = slice_sums(reader, i % count, i / count);
    set_join_float(GREATEST + i, Partial(from + V_DIM * 4).v);
    set_join_float(SUM + i, Partial(from + (V_DIM + 1) * 4).v);
  }
  barrier();
  [[dont_unroll]] for (uint i = tid; i < own * count; i += THREADS) {
    float most = LOWEST_SCORE;
    [[dont_unroll]] for (uint s = 0; s < count; ++s)
      most = max(most, join_float(GREATEST + i / count * count + s));
    set_join_float(WEIGHT + i, exp2(join_float(GREATEST + i) - most));
  }
  barrier();
  [[dont_unroll]] for (uint e = tid; e < own * V_DIM; e += THREADS) {
    const uint row = e / V_DIM, d = e % V_DIM;
    float total = 0.0, x = 0.0;
    [[dont_unroll]] for (uint s = 0; s < count; s += SLICES_TOGETHER) {
      float part[SLICES_TOGETHER];
      [[unroll]] for (uint i = 0; i < SLICES_TOGETHER; ++i)
        part[i] = Partial(slice_sums(reader, min(s + i, count - 1), row) + uint64_t(d) * 4).v;
      [[unroll]] for (uint i = 0; i < SLICES_TOGETHER; ++i) {
        if (s + i >= count) continue;
        const uint at = row * count + s + i;
        total = fma(join_float(WEIGHT + at), join_float(SUM + at), total);
        x = fma(join_float(WEIGHT + at), part[i], x);
      }
    }
    float most = LOWEST_SCORE;
#if SINKS || LSE
    [[dont_unroll]] for (uint s = 0; s < count; ++s)
      most = max(most, join_float(GREATEST + row * count + s));
#endif
    put_joined(row, d, x, most, total);
  }
}
