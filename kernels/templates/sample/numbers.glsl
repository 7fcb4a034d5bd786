// Exact arithmetic of sampling: every device gets the same bits. Probabilities are integers, so sums
// do not depend on their order.
#pragma once

// Distances to a row's largest logit, in octaves of the probability with 24 fractional bits. Those
// of `farthest` and more have no probability.
const uint farthest = 29u << 24;

uint multiply_high(uint a, uint b) {
  uint high, low;
  umulExtended(a, b, high, low);
  return high;
}

// The largest weight, and powers of 2 for weights: what an octave is divided into.
const uint full_weight = 0x1fffffffu;
#define POWERS 512

// full_weight 2^(-i / POWERS), within 1.06 of it, and that one for i = 0.
uint power_at(uint i) {
  uint power = 0xffffffffu;
  // 2^32 2^-(1/2), 2^-(1/4), ...
  if ((i & 256) != 0) power = multiply_high(power, 0xb504f334u);
  if ((i & 128) != 0) power = multiply_high(power, 0xd744fccbu);
  if ((i & 64) != 0) power = multiply_high(power, 0xeac0c6e8u);
  if ((i & 32) != 0) power = multiply_high(power, 0xf5257d15u);
  if ((i & 16) != 0) power = multiply_high(power, 0xfa83b2dbu);
  if ((i & 8) != 0) power = multiply_high(power, 0xfd3e0c0du);
  if ((i & 4) != 0) power = multiply_high(power, 0xfe9e115cu);
  if ((i & 2) != 0) power = multiply_high(power, 0xff4ecb59u);
  if ((i & 1) != 0) power = multiply_high(power, 0xffa75652u);
  return power >> 3;
}

// full_weight 2^(-far / 2^24), far <= farthest: `power` of its octave's part, less a part of the chord
// to the next one. The chord is above 2^-x by up to 2^-22.03 of it; the integer is less by up to
// 1, in the first octave 1.06. It decreases. At `farthest` it is 0, nearer at least 1.
uint weight_from(uint far, uint power) {
  const uint chord = 0x0058a9adu;  // 2^32 (1 - 2^(-1 / POWERS))
  return (power - multiply_high(power, multiply_high(far << 17, chord))) >> (far >> 24);
}

// |a| / |b|, rounded towards 0, of normal numbers with a normal quotient. Division instructions
// differ in their rounding.
float divide(float a, float b) {
  const uint high = floatBitsToUint(a) & 0x7fffffffu, low = floatBitsToUint(b) & 0x7fffffffu;
  const uint64_t quotient =
      (uint64_t(high & 0x7fffffu | 0x800000u) << 25) / uint64_t(low & 0x7fffffu | 0x800000u);
  const bool whole = quotient >> 25 != 0;
  const int exponent = int(high >> 23) - int(low >> 23) + 127 - (whole ? 0 : 1);
  if (exponent <= 0) return 0.0;
  if (exponent >= 255) return uintBitsToFloat(0x7f800000u);
  return uintBitsToFloat(uint(exponent) << 23 | uint(quotient >> (whole ? 2 : 1)) & 0x7fffffu);
}

// The upper 64 bits of a product.
uint64_t multiply_high(uint64_t a, uint64_t b) {
  const uint64_t word = 0xffffffffUL;
  const uint64_t low = (a & word) * (b & word);
  const uint64_t first = (a >> 32) * (b & word) + (low >> 32);
  const uint64_t second = (a & word) * (b >> 32) + (first & word);
  return (a >> 32) * (b >> 32) + (first >> 32) + (second >> 32);
}

// The first 64 bits of Philox4x32-10 for a key and the counter (offset, 0, 0, 0).
// Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011.
uint64_t random_bits(uint key0, uint key1, uint offset) {
  uvec4 c = uvec4(offset, 0, 0, 0);
  [[dont_unroll]] for (int turn = 0; turn < 10; ++turn) {
    uint high_a, low_a, high_b, low_b;
    umulExtended(0xd2511f53u, c.x, high_a, low_a);
    umulExtended(0xcd9e8d57u, c.z, high_b, low_b);
    c = uvec4(high_b ^ c.y ^ key0, low_b, high_a ^ c.w ^ key1, low_a);
    key0 += 0x9e3779b9u;
    key1 += 0xbb67ae85u;
  }
  return uint64_t(c.y) << 32 | c.x;
}
