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

#include "common/in_out.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Word { uint v; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Quad { uvec4 v; };

#define SCALE_BLOCK 128  // k, and of B rows

// A number in arithmetic, and a sum of products of at most SCALE_BLOCK k, or of all integers.
#if FORMAT == 4
#define Number int
#else
#define Number float
#endif

#define MANTISSA (FORMAT % 2 == 0 ? 3 : 2)
#define BIAS ((FORMAT % 2 == 0 ? 7 : 15) + FORMAT / 2)

// The number of the lowest byte.
Number number_of(uint byte) {
#if FORMAT == 4
  return bitfieldExtract(int(byte), 0, 8);
#else
  const uint magnitude = byte & 0x7fu, sign = (byte & 0x80u) << 24;
  const uint normal = (magnitude << (23 - MANTISSA)) + ((127u - BIAS) << 23);
  // 2^(1 - BIAS - MANTISSA), the smallest number
  const float least = uintBitsToFloat((128u - BIAS - MANTISSA) << 23);
  uint bits = magnitude < 1u << MANTISSA ? floatBitsToUint(float(magnitude) * least) : normal;
#if FORMAT == 0
  if (magnitude == 0x7fu) bits = 0x7fc00000u;
#elif FORMAT == 1
  if (magnitude >= 0x7cu) bits = magnitude == 0x7cu ? 0x7f800000u : 0x7fc00000u;
#else
  if ((byte & 0xffu) == 0x80u) bits = 0x7fc00000u;
#endif
  return uintBitsToFloat(sign | bits);
#endif
}

Number with_product(Number a, Number b, Number sum) {
#if FORMAT == 4
  return sum + a * b;
#else
  return fma(a, b, sum);
#endif
}

// Of a row of A and one of B, and with SCALES=2 of the block at k. `blocks`: scales of a row.
float scale_a(uint64_t scales, uint row, uint k, uint blocks) {
  const uint64_t at = SCALES == 0   ? uint64_t(0)
                      : SCALES == 1 ? uint64_t(row)
                                    : uint64_t(row) * blocks + k / SCALE_BLOCK;
  return F32(scales + at * 4).v;
}
float scale_b(uint64_t scales, uint row, uint k, uint blocks) {
  return scale_a(scales, SCALES == 2 ? row / SCALE_BLOCK : row, k, blocks);
}
