// Exact arithmetic of sampling: every device gets the same bits. Probabilities are integers, so
// sums do not depend on their order.
#pragma once

#include "common/types.hip"

// Distances to a row's largest logit, in octaves of the probability with 24 fractional bits. Those
// of `farthest` and more have no probability.
constexpr u32 farthest = 1U << 29;

// The upper 32 bits of a product.
GRETA_DEVICE u32 multiply_high(u32 a, u32 b) {
#if defined(GRETA_NVIDIA)
  return __umulhi(a, b);  // NVRTC makes products of 64 bits of the other form
#else
  return u32(u64(a) * b >> 32);
#endif
}

// The words, `high` first, shifted to the right: the lower one.
GRETA_DEVICE u32 shift_right(u32 high, u32 low, u32 bits) {
#if defined(GRETA_NVIDIA)
  return __funnelshift_r(low, high, bits);
#else
  return u32((u64(high) << 32 | low) >> (bits & 31));
#endif
}

// 2^31 2^(-far / 2^24), far < farthest, to the nearest integer: within 2^-22.6 of it before it is
// rounded, and exact for whole octaves. The polynomial agrees with 2^-f at the Chebyshev extrema of
// [0, 1]. It decreases. At `farthest` it is any number.
GRETA_DEVICE u32 weight_at(u32 far) {
  const u32 f = far << 8, octaves = far >> 24;
  u32 sum = 0x003e1950U;
  sum = 0x025c178dU - multiply_high(f, sum);
  sum = 0x0e290391U - multiply_high(f, sum);
  sum = 0x3d7cf79eU - multiply_high(f, sum);
  sum = 0xb171f24bU - multiply_high(f, sum);
  // 2^31 and half of what is shifted out
  const u32 rounded = shift_right(1, 1U << (octaves & 31), 1);
  return shift_right(0, rounded - (multiply_high(f, sum) >> 1), octaves);
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
