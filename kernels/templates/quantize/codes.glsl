// Numbers of eight bits (kernels/model/byte_formats.hpp) from f32, to nearest even, saturating.
//
// FORMAT is the number of the format: 0 e4m3, 1 e5m2, 2 e4m3_fnuz, 3 e5m2_fnuz, 4 int8.
#pragma once

#if !defined(FORMAT)
#error "FORMAT must be defined"
#endif
#if FORMAT < 0 || FORMAT > 4
#error "FORMAT is 0 to 4"
#endif

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Codes4 { uint v; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer Codes8 { uvec2 v; };

#if FORMAT == 4
#define LARGEST 127.0
#elif FORMAT == 0
#define LARGEST 448.0
#elif FORMAT == 2
#define LARGEST 240.0
#else
#define LARGEST 57344.0
#endif
const uint least_scale = 0x00800000u;  // 2^-126

uint size_bits(float x) { return floatBitsToUint(x) & 0x7fffffffu; }

// Infinities count as the largest finite number.
float finite(float x) {
  return size_bits(x) == 0x7f800000u ? uintBitsToFloat(floatBitsToUint(x) - 1) : x;
}

// The size as bits. NaN is the largest of all with integers, and does not count else.
uint counted_size(float x) {
  const uint size = size_bits(x);
#if FORMAT != 4
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

uint code_of(float x) {
  const uint bits = size_bits(x);
#if FORMAT == 4
  if (bits > 0x7f800000u) return 0;
  return uint(int(roundEven(clamp(x, -128.0, 127.0)))) & 0xffu;
#else
  const uint mantissa = FORMAT % 2 == 0 ? 3 : 2, shift = 23 - mantissa;
  const uint bias = (FORMAT % 2 == 0 ? 7 : 15) + FORMAT / 2;
  const uint normal = (128 - bias) << 23;                 // of the smallest normal number
  const uint magic = (128 - bias - mantissa + 23) << 23;  // whose last bit is the smallest number
  if (bits > 0x7f800000u) return FORMAT >= 2 ? 0x80 : 0x7f;
  const uint size = min(bits, floatBitsToUint(LARGEST));
  const uint rounded = (size + (1u << (shift - 1)) - 1 + (size >> shift & 1u)) >> shift;
  precise float subnormal = uintBitsToFloat(size) + uintBitsToFloat(magic);
  const uint magnitude =
      size < normal ? floatBitsToUint(subnormal) - magic : rounded - ((127 - bias) << mantissa);
  if (FORMAT >= 2 && magnitude == 0) return 0;  // whose negative is NaN
  return magnitude | (floatBitsToUint(x) >> 24 & 0x80u);
#endif
}

uint four_codes(float a, float b, float c, float d) {
  return code_of(a) | code_of(b) << 8 | code_of(c) << 16 | code_of(d) << 24;
}

void store_codes(uint64_t at, float x[VEC]) {
#if VEC == 8
  Codes8(at).v = uvec2(four_codes(x[0], x[1], x[2], x[3]), four_codes(x[4], x[5], x[6], x[7]));
#else
  Codes4(at).v = four_codes(x[0], x[1], x[2], x[3]);
#endif
}
