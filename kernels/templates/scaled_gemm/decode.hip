// Sixteen numbers of eight bits in arithmetic: by conversions of the device where it has them (NVIDIA
// from sm_89 on; AMD's gfx942, gfx950 and gfx12), and products of integers four at a time.
#pragma once

#include "scaled_gemm/numbers.hip"

// Conversions of two numbers at once: of NVIDIA to f16, of AMD to f32.
#if defined(GRETA_NVIDIA) && __CUDA_ARCH__ >= 890 && FORMAT < 2
#define GRETA_PAIR_F16
#elif (defined(__gfx942__) && (FORMAT == 2 || FORMAT == 3)) || \
    ((defined(__gfx950__) || defined(__GFX12__)) && FORMAT < 2)
#define GRETA_PAIR_F32
#endif

#if FORMAT < 2
// The numbers of a word as f16, which represents them exactly: pairs of neighbours.
GRETA_DEVICE void halves_of_word(u32 word, u32 (&pair)[2]) {
#if defined(GRETA_PAIR_F16)
  GRETA_UNROLL
  for (u32 i = 0; i < 2; ++i) {
    const u16 two = u16(word >> 16 * i);
#if FORMAT == 0
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair[i]) : "h"(two));
#else
    asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(pair[i]) : "h"(two));
#endif
  }
#else
  u32 half[4];
  GRETA_UNROLL
  for (u32 i = 0; i < 4; ++i) half[i] = narrow_f16(number_of(word >> 8 * i)).bits;
  pair[0] = half[0] | half[1] << 16;
  pair[1] = half[2] | half[3] << 16;
#endif
}
#endif

// The numbers of a word.
GRETA_DEVICE void decode_word(u32 word, Number (&number)[4]) {
#if defined(GRETA_PAIR_F16)
  u32 pair[2];
  halves_of_word(word, pair);
  GRETA_UNROLL
  for (u32 i = 0; i < 4; ++i) number[i] = to_float(f16{u16(pair[i / 2] >> i % 2 * 16)});
#elif defined(GRETA_PAIR_F32)
#if FORMAT % 2 == 0
  const auto low = __builtin_amdgcn_cvt_pk_f32_fp8(int(word), false);
  const auto high = __builtin_amdgcn_cvt_pk_f32_fp8(int(word), true);
#else
  const auto low = __builtin_amdgcn_cvt_pk_f32_bf8(int(word), false);
  const auto high = __builtin_amdgcn_cvt_pk_f32_bf8(int(word), true);
#endif
  number[0] = low[0];
  number[1] = low[1];
  number[2] = high[0];
  number[3] = high[1];
#else
  GRETA_UNROLL
  for (u32 i = 0; i < 4; ++i) number[i] = number_of(word >> 8 * i);
#endif
}

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
