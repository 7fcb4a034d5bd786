// f32 by products of TF32, f32 with 11 significant bits, which NVIDIA's matrix cores multiply.
//
//   split_chunk(chunk)   four f32, each as a high part and a low one, both rounded: the rest is at
//                        most 2^-23 of a value
//   rounded_to_tf32(x)   the nearest TF32, as its bits
//   within(x, most)      x between -most and most
//
// A product of f32 is then three of TF32: low by high, high by low, and high by high. That of the low
// parts is at most 2^-22 of it, and is omitted.
#pragma once

#include "common/types.hip"

#if (defined(GRETA_NVIDIA) && __CUDA_ARCH__ >= 800) || (defined(GRETA_HOST) && GRETA_HOST == 80)

// Four f32 as sums of two TF32.
struct SplitChunk {
  Words<16> high, low;
};

GRETA_DEVICE u32 rounded_to_tf32(float x) {
#if defined(GRETA_HOST)
  return greta_host::to_tf32(x);
#else
  u32 rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(x));
  return rounded;
#endif
}

// NaN gives a bound.
GRETA_DEVICE float within(float x, float most) {
#if defined(GRETA_HOST)
  return __builtin_fmaxf(__builtin_fminf(x, most), -most);
#else
  return fmaxf(fminf(x, most), -most);
#endif
}

// The largest TF32. An infinite high part would make low ones NaN.
constexpr float most_of_tf32 = 0x1.ffcp127f;

GRETA_DEVICE SplitChunk split_chunk(const Words<16>& chunk) {
  SplitChunk parts;
  GRETA_UNROLL
  for (u32 i = 0; i < 4; ++i) {
    const float x = float_from_bits(chunk.word[i]);
    const float high = within(float_from_bits(rounded_to_tf32(x)), most_of_tf32);
    parts.high.word[i] = bits_of(high);
    parts.low.word[i] = rounded_to_tf32(x - high);
  }
  return parts;
}

#endif
