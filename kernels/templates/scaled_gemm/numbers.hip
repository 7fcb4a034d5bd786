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
#if SCALES == 3 ? (FORMAT > 1 && FORMAT < 5) || (FORMAT_B > 1 && FORMAT_B < 5) \
                : FORMAT_B != FORMAT || FORMAT == 5
#error "microscaling formats are e4m3, e5m2 and e2m1; others have e2m1 nowhere, and one format"
#endif

#include "common/in_out.hip"

constexpr u32 scale_block = SCALES == 3 ? 32 : 128;  // k
constexpr u32 scale_lines = SCALES == 2 ? 128 : 1;   // rows of B

// How many numbers of a format a byte has.
template <u32 format>
constexpr u32 of_byte = format == 5 ? 2 : 1;

// What is stored of a scale.
#if SCALES == 3
typedef u8 Scale;
#else
typedef float Scale;
#endif
GRETA_DEVICE float value_of_scale(float scale) { return scale; }
// e8m0: 2^(scale - 127), or NaN for 255.
GRETA_DEVICE float value_of_scale(u8 scale) {
  return float_from_bits(scale == 255 ? 0x7fc00000U : scale == 0 ? 0x00400000U : u32(scale) << 23);
}

// A number in arithmetic, and a sum of products of at most scale_block k, or of all integers.
#if FORMAT == 4
typedef int Number;
#else
typedef float Number;
#endif

// The number of the lowest byte, or of its lower half.
template <u32 format = FORMAT>
GRETA_DEVICE Number number_of(u32 byte) {
#if FORMAT == 4
  return int(byte << 24) >> 24;
#else
  constexpr u32 mantissa = format == 5 ? 1 : format % 2 == 0 ? 3 : 2;
  constexpr u32 bias = format == 5 ? 1 : (format % 2 == 0 ? 7 : 15) + format / 2;
  constexpr u32 sign_bit = format == 5 ? 8 : 0x80;
  const u32 magnitude = byte & (sign_bit - 1), sign = (byte & sign_bit) * (0x80000000U / sign_bit);
  const u32 normal = (magnitude << (23 - mantissa)) + ((127 - bias) << 23);
  // 2^(1 - bias - mantissa), the smallest number
  const float least = float_from_bits((128 - bias - mantissa) << 23);
  u32 bits = magnitude < 1U << mantissa ? bits_of(float(magnitude) * least) : normal;
  if (format == 0 && magnitude == 0x7f) bits = 0x7fc00000U;
  if (format == 1 && magnitude >= 0x7c) bits = magnitude == 0x7c ? 0x7f800000U : 0x7fc00000U;
  if ((format == 2 || format == 3) && (byte & 0xff) == 0x80) bits = 0x7fc00000U;
  return float_from_bits(sign | bits);
#endif
}

GRETA_DEVICE void add_product(Number a, Number b, Number& sum) {
#if FORMAT == 4
  sum += a * b;
#else
  sum = multiply_add(a, b, sum);
#endif
}

// Scales of both operands. `blocks`: scales of a row.
struct ScalePair {
  const Scale *a, *b;
  u32 blocks;

  // Of a row of A and one of B, and with SCALES >= 2 of the block at k.
  GRETA_DEVICE float of_a(u32 row, u32 k) const {
    return value_of_scale(a[SCALES == 0   ? 0
                            : SCALES == 1 ? row
                                          : u64(row) * blocks + k / scale_block]);
  }
  GRETA_DEVICE float of_b(u32 row, u32 k) const {
    return value_of_scale(b[SCALES == 0   ? 0
                            : SCALES == 1 ? row
                                          : u64(row / scale_lines) * blocks + k / scale_block]);
  }
};
