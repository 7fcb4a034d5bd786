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

#if FORMAT == 5
layout(buffer_reference, std430, buffer_reference_align = 2) buffer Codes2 { uint16_t v; };
#endif
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Codes4 { uint v; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer Codes8 { uvec2 v; };

#if FORMAT == 4
#define LARGEST 127.0
#elif FORMAT == 0
#define LARGEST 448.0
#elif FORMAT == 2
#define LARGEST 240.0
#elif FORMAT == 5
#define LARGEST 6.0
#else
#define LARGEST 57344.0
#endif
#define CODES_OF_BYTE (FORMAT == 5 ? 2 : 1)
const uint least_scale = 0x00800000u;  // 2^-126

uint size_bits(float x) { return floatBitsToUint(x) & 0x7fffffffu; }

// Infinities count as the largest finite number.
float finite(float x) {
  return size_bits(x) == 0x7f800000u ? uintBitsToFloat(floatBitsToUint(x) - 1) : x;
}

// The size as bits. NaN is the largest of all with formats without it, and does not count else.
uint counted_size(float x) {
  const uint size = size_bits(x);
#if FORMAT < 4
  if (size > 0x7f800000u) return 0;
#endif
  return size;
}

// A scale that divides: at least 2^-126. Positive numbers are in the order of their bits.
float at_least_normal(float scale) {
  const uint bits = floatBitsToUint(scale);
  return bits >= least_scale && bits <= 0x7f800000u ? scale : uintBitsToFloat(least_scale);
}

// What numbers of at most this size are divided by.
float scale_of(uint most) {
  if (most > 0x7f800000u) return uintBitsToFloat(0x7fc00000u);
  return at_least_normal(uintBitsToFloat(min(most, 0x7f7fffffu)) * (1.0 / LARGEST));
}

// The same of microscaling formats: 2^(code - 127), whose exponent is that of the largest number less that
// of the format's largest. Source: OCP Microscaling Formats (MX) Specification 1.0, section 6.3.
uint power_code_of(uint most) {
  const uint exponent = FORMAT == 0 ? 8 : FORMAT == 1 ? 15 : 2;
  if (most > 0x7f800000u) return 255;
  const uint of_most = min(most, 0x7f7fffffu) >> 23;
  return of_most < exponent ? 0 : of_most - exponent;
}
float inverse_power(uint code) {
  return uintBitsToFloat(code == 255u ? 0x7fc00000u : (254u - code) << 23);
}

uint code_of(float x) {
  const uint bits = size_bits(x);
#if FORMAT == 4
  if (bits > 0x7f800000u) return 0;
  return uint(int(roundEven(clamp(x, -128.0, 127.0)))) & 0xffu;
#else
  const uint mantissa = FORMAT == 5 ? 1 : FORMAT % 2 == 0 ? 3 : 2, shift = 23 - mantissa;
  const uint bias = FORMAT == 5 ? 1 : (FORMAT % 2 == 0 ? 7 : 15) + FORMAT / 2;
  const uint normal = (128 - bias) << 23;                 // of the smallest normal number
  const uint magic = (128 - bias - mantissa + 23) << 23;  // whose last bit is the smallest number
  if (bits > 0x7f800000u) return FORMAT == 5 ? 0 : FORMAT >= 2 ? 0x80 : 0x7f;
  const uint size = min(bits, floatBitsToUint(LARGEST));
  const uint rounded = (size + (1u << (shift - 1)) - 1 + (size >> shift & 1u)) >> shift;
  precise float subnormal = uintBitsToFloat(size) + uintBitsToFloat(magic);
  const uint magnitude =
      size < normal ? floatBitsToUint(subnormal) - magic : rounded - ((127 - bias) << mantissa);
  if (FORMAT == 5) return magnitude | (floatBitsToUint(x) >> 28 & 8u);
  if (FORMAT >= 2 && magnitude == 0) return 0;  // whose negative is NaN
  return magnitude | (floatBitsToUint(x) >> 24 & 0x80u);
#endif
}

uint four_codes(float a, float b, float c, float d) {
  const uint bits = 8 / CODES_OF_BYTE;
  return code_of(a) | code_of(b) << bits | code_of(c) << 2 * bits | code_of(d) << 3 * bits;
}

void store_codes(uint64_t at, float x[VEC]) {
#if FORMAT == 5 && VEC == 8
  Codes4(at).v = four_codes(x[0], x[1], x[2], x[3]) | four_codes(x[4], x[5], x[6], x[7]) << 16;
#elif FORMAT == 5
  Codes2(at).v = uint16_t(four_codes(x[0], x[1], x[2], x[3]));
#elif VEC == 8
  Codes8(at).v = uvec2(four_codes(x[0], x[1], x[2], x[3]), four_codes(x[4], x[5], x[6], x[7]));
#else
  Codes4(at).v = four_codes(x[0], x[1], x[2], x[3]);
#endif
}
