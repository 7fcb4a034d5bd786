// Numbers in arithmetic: by conversions of the device where it has them (NVIDIA from sm_89 on; AMD's
// gfx942, gfx950 and gfx12), and products of integers four at a time.
#pragma once

#include "scaled_gemm/numbers.hip"

// Conversions of two numbers at once: of NVIDIA to f16, of AMD to f32.
#if defined(GRETA_NVIDIA) && __CUDA_ARCH__ >= 890
#define GRETA_PAIR_F16
template <u32 format>
constexpr bool has_pairs = format < 2;
#elif defined(__gfx942__) || defined(__gfx950__) || defined(__GFX12__)
#define GRETA_PAIR_F32
template <u32 format>
#if defined(__gfx942__)
constexpr bool has_pairs = format == 2 || format == 3;
#else
constexpr bool has_pairs = format < 2;
#endif
#endif

#if FORMAT < 2 || FORMAT == 5
// The numbers of a word, or of e2m1 of its lower half, as f16, which represents them exactly: pairs of
// neighbours.
template <u32 format = FORMAT>
GRETA_DEVICE void halves_of_word(u32 word, u32 (&pair)[2]) {
#if defined(GRETA_PAIR_F16)
  if constexpr (has_pairs<format>) {
    GRETA_UNROLL
    for (u32 i = 0; i < 2; ++i) {
      const u16 two = u16(word >> 16 * i);
      if constexpr (format == 0) {
        asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair[i]) : "h"(two));
      } else {
        asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(pair[i]) : "h"(two));
      }
    }
    return;
  }
#endif
  if constexpr (format == 5) {
    // The bits of e2m1 in those of f16 are the number times 2^-14, also below the normal ones.
    GRETA_UNROLL
    for (u32 i = 0; i < 2; ++i) {
      const u32 two = word >> 8 * i & 0xff, apart = two | two << 12;
      const u32 bits = (apart << 9 & 0x0e000e00U) | (apart << 12 & 0x80008000U);
#if defined(GRETA_NVIDIA)
      asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(pair[i]) : "r"(bits), "r"(0x74007400U));
#else
      const u32 low = narrow_f16(to_float(f16{u16(bits)}) * 16384.0f).bits;
      pair[i] = low | u32(narrow_f16(to_float(f16{u16(bits >> 16)}) * 16384.0f).bits) << 16;
#endif
    }
    return;
  }
  u32 half[4];
  GRETA_UNROLL
  for (u32 i = 0; i < 4; ++i) {
    half[i] = narrow_f16(number_of<format>(word >> 8 / of_byte<format> * i)).bits;
  }
  pair[0] = half[0] | half[1] << 16;
  pair[1] = half[2] | half[3] << 16;
}
#endif

// The numbers of a word, or of e2m1 of its lower half.
template <u32 format = FORMAT>
GRETA_DEVICE void decode_word(u32 word, Number (&number)[4]) {
#if defined(GRETA_PAIR_F16) && (FORMAT < 2 || FORMAT == 5)
  if constexpr (has_pairs<format>) {
    u32 pair[2];
    halves_of_word<format>(word, pair);
    GRETA_UNROLL
    for (u32 i = 0; i < 4; ++i) number[i] = to_float(f16{u16(pair[i / 2] >> i % 2 * 16)});
    return;
  }
#elif defined(GRETA_PAIR_F32)
  if constexpr (has_pairs<format> && format % 2 == 0) {
    const auto low = __builtin_amdgcn_cvt_pk_f32_fp8(int(word), false);
    const auto high = __builtin_amdgcn_cvt_pk_f32_fp8(int(word), true);
    number[0] = low[0];
    number[1] = low[1];
    number[2] = high[0];
    number[3] = high[1];
    return;
  } else if constexpr (has_pairs<format>) {
    const auto low = __builtin_amdgcn_cvt_pk_f32_bf8(int(word), false);
    const auto high = __builtin_amdgcn_cvt_pk_f32_bf8(int(word), true);
    number[0] = low[0];
    number[1] = low[1];
    number[2] = high[0];
    number[3] = high[1];
    return;
  }
#endif
  GRETA_UNROLL
  for (u32 i = 0; i < 4; ++i) number[i] = number_of<format>(word >> 8 / of_byte<format> * i);
}

// `count` numbers of a line in a row, as they are in memory: whole loads of 16 bytes.
template <u32 format, u32 count>
struct LoadedNumbers {
  static constexpr u32 loads = count / of_byte<format> / 16;
  Words<16> part[loads];

  // `from`: the first of them.
  static GRETA_DEVICE LoadedNumbers load(const u8* from) {
    LoadedNumbers numbers;
    GRETA_UNROLL
    for (u32 i = 0; i < loads; ++i) numbers.part[i] = load_words<16>(from + i * 16);
    return numbers;
  }
  GRETA_DEVICE u32 word(u32 i) const { return part[i / 4].word[i % 4]; }
  // Numbers 4 i to 4 i + 3.
  GRETA_DEVICE void decode_four(u32 i, Number (&number)[4]) const {
    decode_word<format>(word(i / of_byte<format>) >> i % of_byte<format> * 16, number);
  }
};

#if FORMAT == 4
// sum + a b for the four integers of each word.
GRETA_DEVICE int add_dot(u32 a, u32 b, int sum) {
#if defined(GRETA_NVIDIA)
  return __dp4a(int(a), int(b), sum);
#elif defined(GRETA_AMD) && (defined(__GFX11__) || defined(__GFX12__))
  return __builtin_amdgcn_sudot4(true, int(a), true, int(b), sum, false);
#elif defined(__gfx906__) || defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx942__) || \
    defined(__gfx950__) || defined(__gfx1030__)
  return __builtin_amdgcn_sdot4(int(a), int(b), sum, false);
#else
  GRETA_UNROLL
  for (u32 i = 0; i < 4; ++i) sum += number_of(a >> 8 * i) * number_of(b >> 8 * i);
  return sum;
#endif
}
#endif
