// Matrices of numbers of eight bits with scales, of which a thread loads VEC neighbours at a time, with
// UNROLL loads of every line in flight.

#if !defined(VEC)
#error "VEC must be defined"
#endif
#if VEC != 4 && VEC != 8 && VEC != 16
#error "VEC is 4, 8 or 16"
#endif

#include "scaled_gemm/numbers.glsl"

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Pair { uvec2 v; };

// The words of VEC numbers.
void load_numbers(uint64_t at, out uint word[VEC / 4]) {
#if VEC == 4
  word[0] = Word(at).v;
#elif VEC == 8
  const uvec2 two = Pair(at).v;
  word = uint[2](two.x, two.y);
#else
  const uvec4 four = Quad(at).v;
  word = uint[4](four.x, four.y, four.z, four.w);
#endif
}

// Of line `of` of a matrix at `k`; an expert has `lines` of `length` numbers.
float line_scale(uint64_t scales, uint of, uint k, uint lines, uint length) {
  const uint expert = of / lines, within = of - expert * lines;
#if SCALES == 0
  return F32(scales + uint64_t(expert) * 4).v;
#elif SCALES == 1
  return F32(scales + uint64_t(of) * 4).v;
#else
  const uint tall = (lines + SCALE_BLOCK - 1) / SCALE_BLOCK;
  const uint wide = (length + SCALE_BLOCK - 1) / SCALE_BLOCK;
  return scale_a(scales, expert * tall + within / SCALE_BLOCK, k, wide);
#endif
}

// Adds this thread's part of the product of each line with `vector` to `sum`, which is 0. With
// SCALES=2 sums of VEC products are scaled, else those of a line. VEC divides `length`.
void add_products(uint64_t matrix, uint64_t scales, uint64_t zeros, uint64_t vector, uint length,
                  uint lines, uint lane, uint lanes) {
  uint64_t first[LINES];
  [[unroll]] for (uint l = 0; l < LINES; ++l) first[l] = matrix + uint64_t(line[l]) * length;
  [[dont_unroll]] for (uint at = lane * VEC; at < length; at += lanes * VEC * UNROLL) {
    uint part[UNROLL * LINES][VEC / 4];
    [[unroll]] for (uint u = 0; u < UNROLL; ++u) {
      // Threads past the end repeat the last vector.
      const uint from = min(at + u * lanes * VEC, length - VEC);
      [[unroll]] for (uint l = 0; l < LINES; ++l)
        load_numbers(first[l] + from, part[u * LINES + l]);
    }
    [[unroll]] for (uint u = 0; u < UNROLL; ++u) {
      const uint from = at + u * lanes * VEC;
      if (from < length) {
        float own[LINES];
        [[unroll]] for (uint l = 0; l < LINES; ++l) own[l] = 0.0;
        [[unroll]] for (uint step = 0; step < VEC; step += STEP) {
          float x[STEP];
          load_vector(vector, from + step, x);
          [[unroll]] for (uint l = 0; l < LINES; ++l) {
            [[unroll]] for (uint i = 0; i < STEP; ++i) {
              const uint word = part[u * LINES + l][(step + i) / 4];
              own[l] = fma(x[i], float(number_of(word >> 8 * (i % 4))), own[l]);
            }
          }
        }
        [[unroll]] for (uint l = 0; l < LINES; ++l) {
#if SCALES == 2
          sum[l] = fma(line_scale(scales, line[l], from, lines, length), own[l], sum[l]);
#else
          sum[l] += own[l];
#endif
        }
      }
    }
  }
#if SCALES != 2
  [[unroll]] for (uint l = 0; l < LINES; ++l)
    sum[l] *= line_scale(scales, line[l], 0, lines, length);
#endif
}
