#pragma once

// 16-bit floating point numbers. `_Float16` is the compiler's type where it has one, else a
// structure that converts (nearest even) and leaves arithmetic to float.

#include <stdint.h>

namespace greta_host {

inline float float_of_bits(uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
inline uint32_t bits_of_float(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float float_of_bf16(uint16_t bits) {
  return float_of_bits(uint32_t(bits) << 16);
}

inline float float_of_f16(uint16_t bits) {
  const uint32_t magnitude = uint32_t(bits & 0x7fff) << 13, sign = uint32_t(bits & 0x8000) << 16;
  if (magnitude >= 0x7c00U << 13) return float_of_bits(sign | magnitude | 0x7f800000U);
  return float_of_bits(sign | bits_of_float(float_of_bits(magnitude) * 0x1p112f));
}

inline uint16_t f16_of_float(float value) {
  const uint32_t bits = bits_of_float(value), magnitude = bits & 0x7fffffffU;
  uint32_t half = 0x7c00;  // from 65520 on
  if (magnitude > 0x7f800000U) {
    half = 0x7e00;
  } else if (magnitude < 0x38800000U) {  // subnormal: multiples of the last bit of 0.5
    half = bits_of_float(float_of_bits(magnitude) + 0.5f) - bits_of_float(0.5f);
  } else if (magnitude < 0x477ff000U) {
    half = (magnitude - (112U << 23) + 0xfffU + (magnitude >> 13 & 1)) >> 13;
  }
  return uint16_t((bits >> 16 & 0x8000U) | half);
}

#if !defined(__FLT16_MANT_DIG__)

struct float16 {
  uint16_t bits;

  float16() = default;
  float16(float value) : bits(f16_of_float(value)) {}
  operator float() const { return float_of_f16(bits); }
  float16& operator+=(float other) { return *this = float(*this) + other; }
  float16& operator-=(float other) { return *this = float(*this) - other; }
  float16& operator*=(float other) { return *this = float(*this) * other; }
  float16& operator/=(float other) { return *this = float(*this) / other; }
};
#define _Float16 ::greta_host::float16

#endif

/// The formats of a matrix instruction's operands: what the halves of a word are worth.
struct F16 {
  static float value(uint16_t bits) { return float_of_f16(bits); }
};
struct Bf16 {
  static float value(uint16_t bits) { return float_of_bf16(bits); }
};

/// The elements in `words` 32-bit words, the lower half of each first.
template <typename Format, int words>
void unpack(const uint32_t (&packed)[words], float* elements) {
  for (int i = 0; i < words; ++i) {
    elements[2 * i] = Format::value(uint16_t(packed[i]));
    elements[2 * i + 1] = Format::value(uint16_t(packed[i] >> 16));
  }
}

}  // namespace greta_host
