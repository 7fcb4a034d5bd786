// Matrices of numbers of eight bits with scales, of which a thread loads VEC neighbours at a time, with
// UNROLL loads of every line in flight.
#pragma once

#if !defined(VEC)
#error "VEC must be defined"
#endif
#if VEC != 4 && VEC != 8 && VEC != 16
#error "VEC is 4, 8 or 16"
#endif

#include "scaled_gemm/decode.hip"

typedef u8 Stored;
typedef float Scale;

// Lines of `length` numbers, one after the other, of which an expert has `lines`, and their scales.
struct Matrix {
  const Stored* elements;
  const Scale* scales;
  const u8* zeros;
  u32 length, lines;

  // Of a line at `k`.
  GRETA_DEVICE float scale(u32 line, u32 k) const {
    if (SCALES == 1) return scales[line];
    const u32 expert = line / lines;
    if (SCALES == 0) return scales[expert];
    const u32 tall = (lines + scale_block - 1) / scale_block;
    const u64 row = expert * tall + (line - expert * lines) / scale_block;
    return scales[row * ((length + scale_block - 1) / scale_block) + k / scale_block];
  }
};

// Adds the products of a line's neighbours with x.
GRETA_DEVICE void add_words(const Words<VEC>& numbers, const float (&x)[VEC], float& sum) {
  GRETA_UNROLL
  for (int word = 0; word < VEC / 4; ++word) {
    Number number[4];
    decode_word(numbers.word[word], number);
    GRETA_UNROLL
    for (int i = 0; i < 4; ++i) sum = multiply_add(x[4 * word + i], float(number[i]), sum);
  }
}

// Adds this thread's part of the product of each line with `vector` to `sum`, which is 0. With
// SCALES=2 sums of VEC products are scaled, else those of a line. VEC divides the length.
template <u32 lanes, u32 lines, typename T>
GRETA_DEVICE void add_products(const Matrix& matrix, const u32 (&line)[lines], const T* vector,
                               u32 lane, float (&sum)[lines]) {
  const u32 length = matrix.length;
  const Stored* first[lines];
  GRETA_UNROLL
  for (u32 l = 0; l < lines; ++l) first[l] = matrix.elements + u64(line[l]) * length;
  GRETA_NO_UNROLL
  for (u32 at = lane * VEC; at < length; at += lanes * VEC * UNROLL) {
    Words<VEC> part[UNROLL][lines];
    GRETA_UNROLL
    for (u32 u = 0; u < UNROLL; ++u) {
      // Threads past the end repeat the last vector.
      const u32 from = smaller(at + u * lanes * VEC, length - VEC);
      GRETA_UNROLL
      for (u32 l = 0; l < lines; ++l) part[u][l] = load_words<VEC>(first[l] + from);
    }
    loads_go_ahead();
    GRETA_UNROLL
    for (u32 u = 0; u < UNROLL; ++u) {
      const u32 from = at + u * lanes * VEC;
      if (from >= length) continue;
      float x[VEC];
      load_neighbours(vector + from, x);
      GRETA_UNROLL
      for (u32 l = 0; l < lines; ++l) {
        float own = 0.0f;
        add_words(part[u][l], x, SCALES == 2 ? own : sum[l]);
        if (SCALES == 2) sum[l] = multiply_add(matrix.scale(line[l], from), own, sum[l]);
      }
    }
  }
  if (SCALES == 2) return;
  GRETA_UNROLL
  for (u32 l = 0; l < lines; ++l) sum[l] *= matrix.scale(line[l], 0);
}
