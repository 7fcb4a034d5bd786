// Weights as sums of PARTS numbers of A's type, f16 or bf16, for products on matrix cores.
//
// With PARTS 1 a weight is rounded. Otherwise each number but the last takes the upper bits of what is left,
// 11 of f16 and 8 of bf16, and the last one is the rest, which is rounded.
// - Weights of formats with a scale and an integer have up to 19 bits, or with scales of bf16 16. Their
//   parts are all other than 0 and have one sign, so that their products with an infinity are that infinity:
//   a part is below what is left, even if its type has that. What remains is exact.
// - Those of q4_k and q6_k have 24 bits. A part is the nearest number, so that the last one is
//   rounded by 2^-22 of the weight at most, or 2^-24 with three parts.
// f16 has multiples of 2^-24. All weights are, as their scales are numbers of f16, and so are all parts. Twice
// the weight has two parts other than 0 also where the weight is 2^-24. So weights are multiplied by
// WEIGHT_FACTOR, and sums by its inverse.
#pragma once

#if !defined(PARTS) || PARTS < 1 || PARTS > 3 || (IN_F16 && PARTS > 2)
#error "PARTS must be 1 to 3, with f16 1 or 2"
#endif
#if !IN_F16 && !IN_BF16
#error "weights have parts of f16 or bf16"
#endif

#if IN_F16
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif

#define UNEQUAL_PARTS (FORMAT < 4)
#define WEIGHT_FACTOR (IN_F16 != 0 && UNEQUAL_PARTS && PARTS > 1 ? 2.0 : 1.0)
// Bits of f32 that A's type has not.
#define LOWER_BITS (IN_F16 != 0 ? 13 : 16)
#define UPPER_MASK (0xffffffffu << LOWER_BITS)

// A number of A's type that is the first part of x: the nearest one, or the next one below |x|.
float upper_part(float x) {
  const uint bits = floatBitsToUint(x);
#if UNEQUAL_PARTS
  const uint sign = bits & 0x80000000u, size = bits & 0x7fffffffu;
  float part = uintBitsToFloat((max(size, 1u) - 1u) & UPPER_MASK);
#if IN_F16
  part = max(0.0, min(part, uintBitsToFloat(size) - 5.9604644775390625e-8));  // 2^-24
#endif
  return uintBitsToFloat(floatBitsToUint(part) | sign);
#else
  const uint half_ = (1u << (LOWER_BITS - 1)) - 1u;
  return uintBitsToFloat((bits + half_ + (bits >> LOWER_BITS & 1u)) & UPPER_MASK);
#endif
}

// Eight numbers in A's type.
uvec4 rounded8(float x[8]) {
  uvec4 words;
#if IN_F16
  [[unroll]] for (uint i = 0; i < 4; ++i) words[i] = packFloat2x16(f16vec2(x[2 * i], x[2 * i + 1]));
#else
  const uvec4 low = bf16_from_float(vec4(x[0], x[2], x[4], x[6]));
  words = low | bf16_from_float(vec4(x[1], x[3], x[5], x[7])) << 16;
#endif
  return words;
}

// Part `part` of eight weights, of which x has what the parts before it left.
uvec4 take_part(uint part, inout float x[8]) {
  if (part == PARTS - 1) return rounded8(x);
  float upper[8];
  [[unroll]] for (uint i = 0; i < 8; ++i) {
    upper[i] = upper_part(x[i]);
    x[i] -= upper[i];
  }
  return rounded8(upper);
}
