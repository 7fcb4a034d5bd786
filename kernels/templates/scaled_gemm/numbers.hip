// Numbers of eight bits (kernels/model/byte_formats.hpp), and sums of their products with scales.
//
// FORMAT is the number of the format: 0 e4m3, 1 e5m2, 2 e4m3_fnuz, 3 e5m2_fnuz, 4 int8. SCALES says
// what shares a scale: 0 an operand, 1 a row of it, 2 blocks along k.
#pragma once

#if !defined(FORMAT) || !defined(SCALES)
#error "FORMAT and SCALES must be defined"
#endif
#if FORMAT < 0 || FORMAT > 4 || SCALES < 0 || SCALES > 2
#error "FORMAT is 0 to 4, SCALES 0 to 2"
#endif

#include "common/in_out.hip"

constexpr u32 scale_block = 128;  // k, and of B rows

// A number in arithmetic, and a sum of products of at most scale_block k, or of all integers.
#if FORMAT == 4
typedef int Number;
#else
typedef float Number;
#endif

// The number of the lowest byte.
GRETA_DEVICE Number number_of(u32 byte) {
#if FORMAT == 4
  return int(byte << 24) >> 24;
#else
  constexpr u32 mantissa = FORMAT % 2 == 0 ? 3 : 2;
  constexpr u32 bias = (FORMAT % 2 == 0 ? 7 : 15) + FORMAT / 2;
  const u32 magnitude = byte & 0x7f, sign = (byte & 0x80) << 24;
  const u32 normal = (magnitude << (23 - mantissa)) + ((127 - bias) << 23);
  // 2^(1 - bias - mantissa), the smallest number
  const float least = float_from_bits((128 - bias - mantissa) << 23);
  u32 bits = magnitude < 1U << mantissa ? bits_of(float(magnitude) * least) : normal;
#if FORMAT == 0
  if (magnitude == 0x7f) bits = 0x7fc00000U;
#elif FORMAT == 1
  if (magnitude >= 0x7c) bits = magnitude == 0x7c ? 0x7f800000U : 0x7fc00000U;
#else
  if ((byte & 0xff) == 0x80) bits = 0x7fc00000U;
#endif
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
  const float *a, *b;
  u32 blocks;

  // Of a row of A and one of B, and with SCALES=2 of the block at k.
  GRETA_DEVICE float of_a(u32 row, u32 k) const {
    return SCALES == 0 ? a[0] : SCALES == 1 ? a[row] : a[u64(row) * blocks + k / scale_block];
  }
  GRETA_DEVICE float of_b(u32 row, u32 k) const {
    return SCALES == 0   ? b[0]
           : SCALES == 1 ? b[row]
                         : b[u64(row / scale_block) * blocks + k / scale_block];
  }
};
