// One row of A in shared memory as digits, six of eight bits for each element.
//
// A finite element of f16 is a multiple of 2^-24 below 2^16, which six digits represent exactly. bf16 has too
// many exponents for that. So each unit of 128 elements has a power of two that brings its largest element
// below 2^16, and elements down to 2^-17 are multiples of 2^-24 then. Zeros have digits, too. Others have
// none: infinities, NaN, and of bf16 what is more than 2^32 times smaller than the power of two of the largest
// element of its unit, below 2^-113, or at least 2^104.
#pragma once

#include "common/byte_types.hip"
#include "common/reduce.hip"
#include "quantized_gemm/ring.hip"

// Of a unit of A: in halves of 64 weights of four parts, 16 bytes of each digit and part. Halves are apart
// so that lanes that write both find them in different banks.
constexpr u32 digits = 6, digit_bytes = parts * 16, half_bytes = digits * digit_bytes + 64;
constexpr u32 unit_bytes = 2 * half_bytes;

// A number below 2^22 as the last bits of a float.
constexpr float above = 12582912.0f;  // 1.5 x 2^23
constexpr u32 bits_above = 0x4b400000U;

// An element is the number that its digits represent times a power of two of its unit, with f16 1.
#if IN_F16
GRETA_DEVICE float unit_power(const Words<16>&) { return 1.0f; }
GRETA_DEVICE void put_power(u8*, float) {}
GRETA_DEVICE float power_of(const u8*) { return 1.0f; }
#else
constexpr u32 power_place = digits * digit_bytes;  // between the halves

// `eight`: elements of each of 16 neighbouring lanes, which have a unit.
GRETA_DEVICE float unit_power(const Words<16>& eight) {
  float largest = 0x1p-81f;  // of powers of two: elements without their mantissas
  GRETA_UNROLL
  for (u32 i = 0; i < 8; ++i) {
    const u32 bits = i % 2 == 0 ? eight.word[i / 2] << 16 : eight.word[i / 2];
    largest = larger(largest, float_from_bits(bits & 0x7f800000U));
  }
  largest = reduce_lanes<16>(largest, Larger{});
  return (largest < 0x1p103f ? largest : 0x1p103f) * 0x1p-15f;
}

GRETA_DEVICE void put_power(u8* unit, float power) {
  store_words<4>(unit + power_place, {{bits_of(power)}});
}
GRETA_DEVICE float power_of(const u8* unit) {
  return float_from_bits(load_words<4>(unit + power_place).word[0]);
}
#endif

// 1 / power, exactly.
GRETA_DEVICE float inverse_of(float power) { return float_from_bits((254U << 23) - bits_of(power)); }

// An element over its unit's power. If it is too small for that, it is 0.
GRETA_DEVICE float scaled_element(u32 bits, float inverse) { return to_float(In{u16(bits)}) * inverse; }

// Whether an element is the number of some digits; `x`: the element as it was scaled.
GRETA_DEVICE bool has_digits(u32 bits, float x) {
  const float size = x < 0.0f ? -x : x;
  return size < 0x1p16f && (IN_F16 || (bits & 0x7fffU) == 0 || size >= 0x1p-17f);
}

// The digits of an element, lowest first, in three bytes of two words: x = high / 4 + low / 2^24.
struct Digits {
  u32 low, high;
};

// Bytes of the number in the last bits of `x`, in -128 to 127.
GRETA_DEVICE u32 three_digits(float x) { return (bits_of(x) + (0x808080U - bits_above)) ^ 0x808080U; }

GRETA_DEVICE Digits digits_of(float x) {
  const float high = multiply_add(x, 4.0f, above);
  const float rest = multiply_add(high - above, -0.25f, x);
  return {three_digits(multiply_add(rest, 0x1p24f, above)), three_digits(high)};
}

// Bytes of two words, which `selector` numbers from the lowest of `low` on.
template <u32 selector>
GRETA_DEVICE u32 bytes_of(u32 low, u32 high) {
#if defined(GRETA_NVIDIA)
  return __byte_perm(low, high, selector);
#else
  const u64 both = u64(high) << 32 | low;
  u32 result = 0;
  for (u32 i = 0; i < 4; ++i) result |= u32(both >> 8 * (selector >> 4 * i & 7U) & 255U) << 8 * i;
  return result;
#endif
}

// Bytes 0, 1 and 2 of four words.
GRETA_DEVICE void transpose(const u32 (&from)[4], u32 (&to)[3]) {
  const u32 first = bytes_of<0x5140>(from[0], from[1]), second = bytes_of<0x5140>(from[2], from[3]);
  to[0] = bytes_of<0x5410>(first, second);
  to[1] = bytes_of<0x7632>(first, second);
  to[2] = bytes_of<0x5410>(bytes_of<0x0062>(from[0], from[1]), bytes_of<0x0062>(from[2], from[3]));
}

// Writes the digits of eight elements; `unit`: where the lane has them of the unit. Returns whether all have
// digits.
GRETA_DEVICE bool put_digits(u8* unit, const Words<16>& eight, float inverse) {
  bool all = true;
  u32 column[digits][2];
  GRETA_UNROLL
  for (u32 half = 0; half < 2; ++half) {
    u32 low[4], high[4], of_low[3], of_high[3];
    GRETA_UNROLL
    for (u32 i = 0; i < 4; ++i) {
      const u32 element = FORMAT == 0 ? 2 * i + half : 4 * half + i;  // neighbours share a byte of int4
      const u32 bits = eight.word[element / 2] >> 16 * (element % 2) & 0xffffU;
      const float x = scaled_element(bits, inverse);
      const bool has = has_digits(bits, x);
      all = all && has;
      const Digits of_element = digits_of(has ? x : 0.0f);
      low[i] = of_element.low;
      high[i] = of_element.high;
    }
    transpose(low, of_low);
    transpose(high, of_high);
    GRETA_UNROLL
    for (u32 d = 0; d < 3; ++d) {
      column[d][half] = of_low[d];
      column[d + 3][half] = of_high[d];
    }
  }
  GRETA_UNROLL
  for (u32 d = 0; d < digits; ++d) {
    store_words<8>(unit + d * digit_bytes, {{column[d][0], column[d][1]}});
  }
  return all;
}

// Eight elements of A of each lane: the wave's of a pair of units.
GRETA_DEVICE Words<16> load_pair(const In* a, u32 pair) {
  return load_now<true>(a + pair * (pair_units * unit_weights) + lane_index() * 8);
}

// Whether it is so in all lanes.
GRETA_DEVICE bool in_all_lanes(bool mine) {
#if defined(GRETA_NVIDIA)
  return __all_sync(0xffffffffU, mine) != 0;
#else
  return reduce_lanes<wave_size>(mine ? 0U : 1U, Add{}) == 0;
#endif
}

// Brings the wave's part of A to shared memory, of which `eight` are the first pair's. Returns whether all of
// its elements have digits.
GRETA_DEVICE bool put_pairs(const In* a, Words<16> eight, u8* rows, u32 pairs) {
  const u32 lane = lane_index(), part = lane % 16 / 4, word = lane % 4;
  u8* unit = rows + lane / 16 * unit_bytes + word / 2 * half_bytes + part * 16 + word % 2 * 8;
  bool all = true;
  for (u32 pair = wave_index(); pair < pairs; pair += WAVES) {
    const Words<16> later = load_pair(a, smaller(pair + WAVES, pairs - 1));
    const float power = unit_power(eight);
    if (lane % 16 == 0) put_power(unit, power);
    all = put_digits(unit, eight, inverse_of(power)) && all;
    eight = later;
    unit += pair_units * unit_bytes;
  }
  return in_all_lanes(all);
}
