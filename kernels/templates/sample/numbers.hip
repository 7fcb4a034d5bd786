// Exact arithmetic of sampling: every device gets the same bits. Probabilities are integers, so
// sums do not depend on their order.
#pragma once

#include "common/types.hip"

// Distances to a row's largest logit, in octaves of the probability with 24 fractional bits. Those
// of `farthest` and more have no probability.
constexpr u32 farthest = 29U << 24;

// The upper 32 bits of a product.
GRETA_DEVICE u32 multiply_high(u32 a, u32 b) {
#if defined(GRETA_NVIDIA)
  return __umulhi(a, b);  // NVRTC makes products of 64 bits of the other form
#else
  return u32(u64(a) * b >> 32);
#endif
}

// The largest weight, of which eight have a sum of 32 bits, and powers of 2 for weights: what an
// octave is divided into.
constexpr u32 full_weight = 0x1fffffffU, powers = 512;

// full_weight 2^(-i / powers), within 1.06 of it, and that one for i = 0.
GRETA_DEVICE u32 power_at(u32 i) {
  u32 power = 0xffffffffU;
  // 2^32 2^-(1/2), 2^-(1/4), ...
  if ((i & 256) != 0) power = multiply_high(power, 0xb504f334U);
  if ((i & 128) != 0) power = multiply_high(power, 0xd744fccbU);
  if ((i & 64) != 0) power = multiply_high(power, 0xeac0c6e8U);
  if ((i & 32) != 0) power = multiply_high(power, 0xf5257d15U);
  if ((i & 16) != 0) power = multiply_high(power, 0xfa83b2dbU);
  if ((i & 8) != 0) power = multiply_high(power, 0xfd3e0c0dU);
  if ((i & 4) != 0) power = multiply_high(power, 0xfe9e115cU);
  if ((i & 2) != 0) power = multiply_high(power, 0xff4ecb59U);
  if ((i & 1) != 0) power = multiply_high(power, 0xffa75652U);
  return power >> 3;
}

// full_weight 2^(-far / 2^24), far <= farthest: `power` of its octave's part, less a part of the
// chord to the next one. The chord is above 2^-x by up to 2^-22.03 of it; the integer is less by up
// to 1, in the first octave 1.06. It decreases. At `farthest` it is 0, nearer at least 1.
GRETA_DEVICE u32 weight_of(u32 far, u32 power) {
  constexpr u32 chord = 0x0058a9adU;  // 2^32 (1 - 2^(-1 / powers))
  return (power - multiply_high(power, multiply_high(far << 17, chord))) >> (far >> 24);
}

// |a| / |b|, rounded towards 0, of normal numbers with a normal quotient. Division instructions
// differ in their rounding.
GRETA_DEVICE float divide(float a, float b) {
  const u32 high = bits_of(a) & 0x7fffffffU, low = bits_of(b) & 0x7fffffffU;
  const u64 quotient = (u64(high & 0x7fffffU | 0x800000U) << 25) / (low & 0x7fffffU | 0x800000U);
  const bool whole = quotient >> 25 != 0;
  const int exponent = int(high >> 23) - int(low >> 23) + 127 - (whole ? 0 : 1);
  if (exponent <= 0) return 0;
  if (exponent >= 255) return float_from_bits(0x7f800000U);
  return float_from_bits(u32(exponent) << 23 | (u32(quotient >> (whole ? 2 : 1)) & 0x7fffffU));
}

// The upper 64 bits of a product.
GRETA_DEVICE u64 multiply_high(u64 a, u64 b) {
  const u64 low = (a & 0xffffffffU) * (b & 0xffffffffU);
  const u64 first = (a >> 32) * (b & 0xffffffffU) + (low >> 32);
  const u64 second = (a & 0xffffffffU) * (b >> 32) + (first & 0xffffffffU);
  return (a >> 32) * (b >> 32) + (first >> 32) + (second >> 32);
}

// The first 64 bits of Philox4x32-10 for a key and the counter (offset, 0, 0, 0).
// Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011.
GRETA_DEVICE u64 random_bits(u32 key0, u32 key1, u32 offset) {
  u32 c0 = offset, c1 = 0, c2 = 0, c3 = 0;
  GRETA_NO_UNROLL
  for (int round = 0; round < 10; ++round) {
    const u64 a = u64(0xd2511f53U) * c0, b = u64(0xcd9e8d57U) * c2;
    c0 = u32(b >> 32) ^ c1 ^ key0;
    c2 = u32(a >> 32) ^ c3 ^ key1;
    c1 = u32(b);
    c3 = u32(a);
    key0 += 0x9e3779b9U;
    key1 += 0xbb67ae85U;
  }
  return u64(c1) << 32 | c0;
}
