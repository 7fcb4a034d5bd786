// Quantised weights as operands of matrix instructions: pairs of elements of A's type, without their
// scale. Both types have all differences of an integer and a zero point.
//
// An integer becomes the last bits of a large power of two, from which the power and the zero point
// are subtracted: so one instruction converts two weights. Integers of 4 bits are eight to a word, and
// those that one mask selects lie four apart: pairs are (i, i + 4), and arranged() gives A's elements
// the same order.
#pragma once

#include "quantized_gemm/weights.hip"

#if !(IN_F16 || IN_BF16)
#error "pairs are of f16 or bf16"
#endif

// Sixteen bytes of a line: eight elements.
struct Eight {
  u32 word[4];
};

// Loads that start here and not later: NVIDIA's compiler moves others to their use, to save registers.
// `shared`: other waves load the same, which the first-level cache then keeps.
template <bool shared = false>
GRETA_DEVICE Words<16> load_now(const void* address) {
#if defined(GRETA_NVIDIA)
  Words<16> w;
  if constexpr (shared) {
    asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w.word[0]), "=r"(w.word[1]), "=r"(w.word[2]), "=r"(w.word[3])
                 : "l"(address));
  } else {
    asm volatile("ld.global.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w.word[0]), "=r"(w.word[1]), "=r"(w.word[2]), "=r"(w.word[3])
                 : "l"(address));
  }
  return w;
#else
  return load_words<16>(address);
#endif
}
GRETA_DEVICE Scale load_now(const Scale* address) {
#if defined(GRETA_NVIDIA) && FORMAT != 6
  Scale scale;
  asm volatile("ld.global.b16 %0, [%1];" : "=h"(scale.bits) : "l"(address));
  return scale;
#else
  return *address;
#endif
}

GRETA_DEVICE u32 load_byte_now(const u8* address) {
#if defined(GRETA_NVIDIA)
  u32 byte;
  asm volatile("ld.global.u8 %0, [%1];" : "=r"(byte) : "l"(address));
  return byte;
#else
  return *address;
#endif
}

#if FORMAT < 2
// Integers of 32 weights of a line, as they lie in memory.
struct Integers {
  u32 word[FORMAT == 0 ? 4 : 8];
};

GRETA_DEVICE Integers load_integers(const u8* from) {
  Integers integers;
  GRETA_UNROLL
  for (u32 i = 0; i < sizeof(Integers) / 16; ++i) {
    const Words<16> words = load_now(from + sixteen_stride * i);
    GRETA_UNROLL
    for (u32 j = 0; j < 4; ++j) integers.word[4 * i + j] = words.word[j];
  }
  return integers;
}
#endif

GRETA_DEVICE u32 upper_halves(float first, float second) {
#if defined(GRETA_NVIDIA)
  return __byte_perm(bits_of(first), bits_of(second), 0x7632);
#else
  return bits_of(first) >> 16 | (bits_of(second) & 0xffff0000U);
#endif
}
GRETA_DEVICE u32 lower_halves(u32 first, u32 second) {
#if defined(GRETA_NVIDIA)
  return __byte_perm(first, second, 0x5410);
#else
  return (first & 0xffffU) | second << 16;
#endif
}

#if IN_F16
GRETA_DEVICE u32 twice_f16(float x) { return narrow_f16(x).bits * 0x10001U; }

// x factor + added of two f16, which the type has.
GRETA_DEVICE u32 scaled_sums(u32 x, u32 factor, u32 added) {
#if defined(GRETA_NVIDIA)
  u32 pair;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(pair) : "r"(x), "r"(factor), "r"(added));
  return pair;
#elif defined(GRETA_AMD)
  typedef _Float16 Two __attribute__((ext_vector_type(2)));
  const Two pair = __builtin_bit_cast(Two, x) * __builtin_bit_cast(Two, factor) +
                   __builtin_bit_cast(Two, added);
  return __builtin_bit_cast(u32, pair);
#else
  float half[2];
  for (u32 i = 0; i < 2; ++i) {
    const auto of = [i](u32 pair) { return to_float(f16{u16(pair >> 16 * i)}); };
    half[i] = of(x) * of(factor) + of(added);
  }
  return narrow_f16(half[0]).bits | u32(narrow_f16(half[1]).bits) << 16;
#endif
}
// x factor - offset.
GRETA_DEVICE u32 scaled_differences(u32 x, u32 factor, u32 offset) {
  return scaled_sums(x, factor, offset ^ 0x80008000U);
}
GRETA_DEVICE u32 scaled_difference(u32 x, float factor, u32 offset) {
  return scaled_differences(x, twice_f16(factor), offset);
}
#else
GRETA_DEVICE u32 twice_bf16(float x) { return narrow_bf16(x).bits * 0x10001U; }

// x + y of two bf16, which the type has.
GRETA_DEVICE u32 sum_of(u32 x, u32 y) {
#if defined(GRETA_NVIDIA)
  u32 pair;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(pair) : "r"(x), "r"(0x3f803f80U), "r"(y));
  return pair;
#else
  return upper_halves(float_from_bits(x << 16) + float_from_bits(y << 16),
                      float_from_bits(x & 0xffff0000U) + float_from_bits(y & 0xffff0000U));
#endif
}
// x - offset.
GRETA_DEVICE u32 difference(u32 x, u32 offset) { return sum_of(x, offset ^ 0x80008000U); }
#endif

#if IN_BF16 && FORMAT == 6
// x factor of two bf16, which the type has.
GRETA_DEVICE u32 scaled(u32 x, u32 factor) {
#if defined(GRETA_NVIDIA)
  u32 pair;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(pair) : "r"(x), "r"(factor), "r"(0x80008000U));
  return pair;
#else
  return upper_halves(float_from_bits(x << 16) * float_from_bits(factor << 16),
                      float_from_bits(x & 0xffff0000U) * float_from_bits(factor & 0xffff0000U));
#endif
}
#endif

// Bytes 2 half and 2 half + 1, each below the byte 0x64: 1024 + byte as f16.
GRETA_DEVICE u32 bytes_above_1024(u32 word, u32 half) {
#if defined(GRETA_NVIDIA)
  return __byte_perm(word, 0x64646464U, half == 0 ? 0x4140U : 0x4342U);
#elif defined(GRETA_AMD)
  return __builtin_amdgcn_perm(0x64646464U, word, half == 0 ? 0x04010400U : 0x04030402U);
#else
  const u32 two = word >> 16 * half;
  return 0x64006400U | (two & 255U) | (two & 0xff00U) << 8;
#endif
}

// The bits of `word` that `mask` selects, in `power`.
GRETA_DEVICE u32 selected(u32 word, u32 mask, u32 power) {
#if defined(GRETA_NVIDIA)  // whose compiler takes two instructions, as both are constants
  u32 result;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(result) : "r"(word), "r"(mask), "r"(power));
  return result;
#else
  return (word & mask) | power;
#endif
}

// Bytes 0 and 2 of `bytes`, in two's complement, as elements of A's type. The other bytes are any.
GRETA_DEVICE u32 signed_elements(u32 bytes) {
#if IN_BF16
  // Seven bits above 128, less 128, or less 256 where the sign is set.
  return sum_of(selected(bytes, 0x007f007fU, 0x43004300U), selected(bytes, 0x00800080U, 0xc300c300U));
#else
  const u32 large = ((bytes & 0x00ff00ffU) ^ 0x00800080U) | 0x64006400U;
  return scaled_differences(large, 0x3c003c00U, twice_f16(1152.0f));
#endif
}

#if FORMAT < 2
// Weights 8 e to 8 e + 7 of a chunk, less `zero`.
GRETA_DEVICE Eight eight_weights(const Integers& integers, u32 e, u32 zero) {
  Eight eight;
#if FORMAT == 0
  const u32 word[2] = {integers.word[e], integers.word[e] >> 8};
#else
  const u32 flip = ZEROS ? 0U : 0x80808080U;  // from two's complement
  const u32 word[2] = {integers.word[2 * e] ^ flip, integers.word[2 * e + 1] ^ flip};
#endif
  GRETA_UNROLL
  for (u32 i = 0; i < 4; ++i) {
#if FORMAT == 0 && IN_F16
    // The upper four bits of a byte are sixteen times their integer.
    const u32 mask = i % 2 == 0 ? 0x000f000fU : 0x00f000f0U;
    const u32 large = selected(word[i / 2], mask, 0x64006400U);
    eight.word[i] = i % 2 == 0 ? scaled_difference(large, 1.0f, twice_f16(1024.0f + float(zero)))
                               : scaled_difference(large, 0.0625f, twice_f16(64.0f + float(zero)));
#elif FORMAT == 1 && IN_F16
    eight.word[i] = scaled_difference(bytes_above_1024(word[i / 2], i % 2), 1.0f,
                                      twice_f16(1024.0f + float(zero)));
#elif FORMAT == 0 && defined(GRETA_NVIDIA)
    // 128 + integer
    const u32 large = selected(word[i / 2] >> i % 2 * 4, 0x000f000fU, 0x43004300U);
    // The type need not have 128 + zero.
    eight.word[i] = ZEROS ? difference(difference(large, twice_bf16(128.0f)), twice_bf16(float(zero)))
                          : difference(large, twice_bf16(136.0f));
#elif FORMAT == 0
    const u32 two = word[i / 2] >> i % 2 * 4;
    eight.word[i] = upper_halves(byte_float(two & 15U, 0) - float(zero),
                                 byte_float(two & 0xf0000U, 2) - float(zero));
#else
    eight.word[i] = upper_halves(byte_float(word[i / 2], i % 2 * 2) - float(zero),
                                 byte_float(word[i / 2], i % 2 * 2 + 1) - float(zero));
#endif
  }
  return eight;
}

// Eight elements of A, in the order of eight_weights().
GRETA_DEVICE Eight arranged(const Eight& eight) {
#if FORMAT == 0
  Eight result;
  GRETA_UNROLL
  for (u32 i = 0; i < 2; ++i) {
    const u32 first = eight.word[i], second = eight.word[i + 2];
    result.word[2 * i] = lower_halves(first, second);
    result.word[2 * i + 1] = upper_halves(float_from_bits(first), float_from_bits(second));
  }
  return result;
#else
  return eight;
#endif
}

GRETA_DEVICE Eight load_elements(const In* from) {
  const Words<16> words = load_now<true>(from);
  return arranged({{words.word[0], words.word[1], words.word[2], words.word[3]}});
}
#endif

// Two integers, of seven bits at most if `small`, less `zero`, as elements of A's type.
template <bool small>
GRETA_DEVICE u32 elements_of(u32 integers, u32 zero) {
#if IN_F16
  return scaled_differences(integers | 0x64006400U, 0x3c003c00U, twice_f16(1024.0f + float(zero)));
#else
  if constexpr (small) return difference(integers | 0x43004300U, twice_bf16(128.0f + float(zero)));
  const float both = 8388608.0f + float(zero);
  return upper_halves(float_from_bits(0x4b000000U | (integers & 255U)) - both,
                      float_from_bits(0x4b000000U | integers >> 16) - both);
#endif
}

#if FORMAT == 4
// What 32 weights of a line are: scale (q - centre) + rest.
struct Centred {
  float scale, rest;
  u32 centre;
};

GRETA_DEVICE Centred centred(float scale, float minimum) {
#if defined(GRETA_NVIDIA)
  const float ratio = __fdividef(minimum, scale);
#else
  const float ratio = minimum / scale;
#endif
  // A scale of 0 gives an infinity, or no number, which is not above 0.
  const float inside = ratio > 0.0f ? (ratio < 15.0f ? ratio : 15.0f) : 0.0f;
  const u32 centre = u32(inside + 0.5f);
  return {scale, multiply_add(scale, float(centre), -minimum), centre};
}
#endif
