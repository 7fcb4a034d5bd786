// Numbers of eight bits (kernels/model/byte_formats.hpp), and sums of their products with scales.
//
// FORMAT is the number of the format: 0 e4m3, 1 e5m2, 2 e4m3_fnuz, 3 e5m2_fnuz, 4 int8, 5 e2m1, two in a
// byte. FORMAT_B is that of B, by default A's. SCALES says what shares a scale: 0 an operand, 1 a row of it,
// 2 blocks along k, 3 blocks of microscaling formats, whose scales are bytes: powers of two.
#pragma once

#if !defined(FORMAT) || !defined(SCALES)
#error "FORMAT and SCALES must be defined"
#endif
#if !defined(FORMAT_B)
#define FORMAT_B FORMAT
#endif
#if FORMAT < 0 || FORMAT > 5 || FORMAT_B < 0 || FORMAT_B > 5 || SCALES < 0 || SCALES > 3
#error "FORMAT and FORMAT_B are 0 to 5, SCALES 0 to 3"
#endif
#if SCALES == 3 && ((FORMAT > 1 && FORMAT < 5) || (FORMAT_B > 1 && FORMAT_B < 5))
#error "microscaling formats are e4m3, e5m2 and e2m1"
#endif
#if SCALES != 3 && (FORMAT_B != FORMAT || FORMAT == 5)
#error "numbers without microscaling have one format, which is not e2m1"
#endif

#include "common/in_out.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Word { uint v; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Quad { uvec4 v; };

#define SCALE_BLOCK (SCALES == 3 ? 32 : 128)  // k
#define SCALE_LINES (SCALES == 2 ? 128 : 1)   // rows of B
#define SCALE_BYTES (SCALES == 3 ? 1 : 4)

// A number in arithmetic, and a sum of products of at most SCALE_BLOCK k, or of all integers.
#if FORMAT == 4
#define Number int
#else
#define Number float
#endif

#define NUMBER_OF number_of
#define NUMBER_FORMAT FORMAT
#include "scaled_gemm/number_of.glsl"
#if FORMAT_B == FORMAT
#define number_of_b number_of
#else
#define NUMBER_OF number_of_b
#define NUMBER_FORMAT FORMAT_B
#include "scaled_gemm/number_of.glsl"
#endif

// How many numbers of A and of B a byte has.
#define OF_BYTE_A (FORMAT == 5 ? 2 : 1)
#define OF_BYTE_B (FORMAT_B == 5 ? 2 : 1)

Number with_product(Number a, Number b, Number sum) {
#if FORMAT == 4
  return sum + a * b;
#else
  return fma(a, b, sum);
#endif
}

// Of a row of A and one of B, and with SCALES >= 2 of the block at k. `blocks`: scales of a row.
float scale_a(uint64_t scales, uint row, uint k, uint blocks) {
  const uint64_t at = SCALES == 0   ? uint64_t(0)
                      : SCALES == 1 ? uint64_t(row)
                                    : uint64_t(row) * blocks + k / SCALE_BLOCK;
#if SCALES == 3
  // Not every driver loads single bytes. A whole word begins and ends in the memory of a buffer.
  const uint64_t place = scales + at;
  const uint code = Word(place & ~uint64_t(3)).v >> (uint(place) & 3u) * 8 & 255u;
  return uintBitsToFloat(code == 255u ? 0x7fc00000u : code == 0u ? 0x00400000u : code << 23);
#else
  return F32(scales + at * 4).v;
#endif
}
float scale_b(uint64_t scales, uint row, uint k, uint blocks) {
  return scale_a(scales, row / SCALE_LINES, k, blocks);
}
