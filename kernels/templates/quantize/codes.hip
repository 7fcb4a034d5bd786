// Numbers of eight bits (kernels/model/byte_formats.hpp) from f32, to nearest even, saturating.
//
// FORMAT is the number of the format: 0 e4m3, 1 e5m2, 2 e4m3_fnuz, 3 e5m2_fnuz, 4 int8, 5 e2m1, two in a
// byte.
#pragma once

#if !defined(FORMAT)
#error "FORMAT must be defined"
#endif
#if FORMAT < 0 || FORMAT > 5
#error "FORMAT is 0 to 5"
#endif

#include "common/types.hip"

#if FORMAT == 4
constexpr float largest_number = 127.0f;
#else
constexpr float largest_number = FORMAT == 0   ? 448.0f
                                 : FORMAT == 2 ? 240.0f
                                 : FORMAT == 5 ? 6.0f
                                               : 57344.0f;
#endif
constexpr bool has_nan = FORMAT < 4;
constexpr u32 codes_of_byte = FORMAT == 5 ? 2 : 1;
constexpr float least_scale = 0x1p-126f;

GRETA_DEVICE u32 size_bits(float x) { return bits_of(x) & 0x7fffffffU; }

// Infinities count as the largest finite number.
GRETA_DEVICE float finite(float x) {
  return size_bits(x) == 0x7f800000U ? float_from_bits(bits_of(x) - 1) : x;
}

// The larger size, as bits. NaN is the largest of all with formats without it, and does not count else.
GRETA_DEVICE u32 larger_size(u32 most, float x) {
  u32 size = size_bits(x);
  if (has_nan && size > 0x7f800000U) size = 0;
  return most < size ? size : most;
}

struct LargerSize {
  GRETA_DEVICE u32 operator()(u32 a, u32 b) const { return a < b ? b : a; }
};

// What numbers of at most this size are divided by.
GRETA_DEVICE float scale_of(u32 most) {
  if (most > 0x7f800000U) return float_from_bits(0x7fc00000U);
  const float scale = float_from_bits(smaller(most, 0x7f7fffffU)) * (1.0f / largest_number);
  return scale >= least_scale ? scale : least_scale;
}

// The same of microscaling formats: 2^(code - 127), whose exponent is that of the largest number less that
// of the format's largest. Source: OCP Microscaling Formats (MX) Specification 1.0, section 6.3.
GRETA_DEVICE u32 power_code_of(u32 most) {
  constexpr u32 exponent = FORMAT == 0 ? 8 : FORMAT == 1 ? 15 : 2;
  if (most > 0x7f800000U) return 255;
  const u32 of_most = smaller(most, 0x7f7fffffU) >> 23;
  return of_most < exponent ? 0 : of_most - exponent;
}
GRETA_DEVICE float inverse_power(u32 code) {
  return float_from_bits(code == 255 ? 0x7fc00000U : (254 - code) << 23);
}

GRETA_DEVICE float within(float x, float least, float most) {
  return x < least ? least : most < x ? most : x;
}

// The code of x, in any language of the backend.
GRETA_DEVICE u32 code_in_steps(float x) {
#if FORMAT == 4
  if (size_bits(x) > 0x7f800000U) return 0;
  return bits_of(within(x, -128.0f, 127.0f) + 12582912.0f) & 0xffU;  // 1.5 2^23
#else
  constexpr u32 mantissa = FORMAT == 5 ? 1 : FORMAT % 2 == 0 ? 3 : 2, shift = 23 - mantissa;
  constexpr u32 bias = FORMAT == 5 ? 1 : (FORMAT % 2 == 0 ? 7 : 15) + FORMAT / 2;
  constexpr u32 normal = (128 - bias) << 23;                 // of the smallest normal number
  constexpr u32 magic = (128 - bias - mantissa + 23) << 23;  // whose last bit is the smallest number
  if (size_bits(x) > 0x7f800000U) return FORMAT == 5 ? 0 : FORMAT >= 2 ? 0x80 : 0x7f;
  const float size = within(float_from_bits(size_bits(x)), 0.0f, largest_number);
  const u32 bits = bits_of(size);
  const u32 rounded = (bits + (1U << (shift - 1)) - 1 + (bits >> shift & 1)) >> shift;
  const u32 magnitude = bits < normal
                            ? bits_of(size + float_from_bits(magic)) - magic
                            : rounded - ((127 - bias) << mantissa);
  if (FORMAT == 5) return magnitude | (bits_of(x) >> 28 & 8U);
  if (FORMAT >= 2 && magnitude == 0) return 0;  // whose negative is NaN
  return magnitude | (bits_of(x) >> 24 & 0x80U);
#endif
}

// The codes of a, in the lower byte or half byte, and of b.
GRETA_DEVICE u32 code_pair(float a, float b) {
#if defined(GRETA_NVIDIA) && __CUDA_ARCH__ >= 890 && FORMAT < 2
  u16 pair;
#if FORMAT == 0
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(b), "f"(a));
#else
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(b), "f"(a));
#endif
  return pair;
#else
  return code_in_steps(a) | code_in_steps(b) << 8 / codes_of_byte;
#endif
}

template <int count>
GRETA_DEVICE void store_codes(u8* first, const float (&x)[count]) {
  constexpr int bytes = count / codes_of_byte, of_word = 4 * codes_of_byte, bits = 32 / of_word;
  Words<bytes> words = {};
  GRETA_UNROLL
  for (int i = 0; i < count; i += 2) {
    words.word[i / of_word] |= code_pair(x[i], x[i + 1]) << i % of_word * bits;
  }
  store_words<bytes>(first, words);
}
