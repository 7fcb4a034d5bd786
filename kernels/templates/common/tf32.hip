// f32 by products of TF32, f32 with 11 significant bits, which NVIDIA's matrix cores multiply.
//
//   split_chunks(chunks, parts), split_chunk(chunk)
//                        four f32 a chunk, each as a high part and a low one, both rounded: the rest
//                        is at most 2^-23 of a value
//   splits_plainly(x)    whether two operations on integers and one subtraction split x
//   split_plainly(x)     the parts of such an x
//   split(x)             those of any x
//   rounded_to_tf32(x)   the nearest TF32, as its bits
//   within(x, most)      x between -most and most
//
// The matrix cores ignore the 13 bits of a word that TF32 lacks. So a word to which half of the last
// bit was added is a rounded TF32, and low parts keep these bits.
//
// A product of f32 is then three of TF32: low by high, high by low, and high by high. That of the low
// parts is at most 2^-22 of it, and is omitted.
#pragma once

#include "common/types.hip"

#if (defined(GRETA_NVIDIA) && __CUDA_ARCH__ >= 800) || (defined(GRETA_HOST) && GRETA_HOST == 80)

// An f32, and four, as sums of two TF32.
struct SplitFloat {
  u32 high, low;
};
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

constexpr u32 bits_of_tf32 = 0xffffe000U, half_of_last = 0x1000U;

// Not so are infinite values, NaN, and those that are rounded to infinite ones.
GRETA_DEVICE bool splits_plainly(float x) {
  constexpr float most = 0x1.ffep127f;
  return x < most && x > -most;
}

GRETA_DEVICE SplitFloat split_plainly(float x) {
  const u32 high = (bits_of(x) + half_of_last) & bits_of_tf32;
  return {high, bits_of(x - float_from_bits(high)) + half_of_last};
}

GRETA_DEVICE SplitFloat split(float x) {
  const float high = within(float_from_bits(rounded_to_tf32(x)), most_of_tf32);
  return {bits_of(high), rounded_to_tf32(x - high)};
}

// One branch for all of them: values that don't split plainly are rare.
template <u32 count>
GRETA_DEVICE void split_chunks(const Words<16> (&chunks)[count], SplitChunk (&parts)[count]) {
  bool plain = true;
  GRETA_UNROLL
  for (u32 i = 0; i < count * 4; ++i) {
    const float x = float_from_bits(chunks[i / 4].word[i % 4]);
    plain = plain && splits_plainly(x);
    const SplitFloat both = split_plainly(x);
    parts[i / 4].high.word[i % 4] = both.high;
    parts[i / 4].low.word[i % 4] = both.low;
  }
  if (plain) return;
  GRETA_UNROLL
  for (u32 i = 0; i < count * 4; ++i) {
    const SplitFloat both = split(float_from_bits(chunks[i / 4].word[i % 4]));
    parts[i / 4].high.word[i % 4] = both.high;
    parts[i / 4].low.word[i % 4] = both.low;
  }
}

GRETA_DEVICE SplitChunk split_chunk(const Words<16>& chunk) {
  const Words<16> chunks[1] = {chunk};
  SplitChunk parts[1];
  split_chunks(chunks, parts);
  return parts[0];
}

#endif
