// Quantised weights in chunks of 32 of a row, of which B has rows, or panels of rows, or words as AWQ and GPTQ pack
// them (kernels/model/weight_packing.hpp, weight_panels.hpp).
//
// PACKING is 0 for rows, 1 for awq, 2 for gptq, 3 for gptq_v2, 4 for panels. Words of neighbouring rows are
// neighbours, and so are scales of AWQ and GPTQ: lanes should have neighbouring rows.
#pragma once

#if !defined(PACKING) || PACKING < 0 || PACKING > 4
#error "PACKING must be 0 to 4"
#endif

#include "quantized_gemm/weights.hip"

#if !PACKING || PANELS
// `rows`: of all of B.
GRETA_DEVICE WeightChunk load_stored_chunk(const Weights& weights, u32, u32 row, u32 index, u32 k) {
  return load_chunk(weights, row, index, k);
}
#else
#if FORMAT > 1 || PACKING == 1 && FORMAT != 0
#error "packed integers have 4 bits, those of GPTQ 4 or 8"
#endif

constexpr u32 packed_bits = FORMAT == 0 ? 4 : 8, of_word = 32 / packed_bits;

// The place of a row's integer in a word of neighbouring rows.
GRETA_DEVICE u32 place_in_word(u32 row) {
  const u32 index = row % of_word;
  return PACKING == 1 ? index / 2 + index % 2 * 4 : index;
}

GRETA_DEVICE u32 word_at(const u8* words, u64 index) { return load_words<4>(words + 4 * index).word[0]; }

constexpr float implied_zero = 1 << (packed_bits - 1);  // where no zero points are given

// The zero point of a row in a word of those of neighbouring rows.
GRETA_DEVICE float zero_point(u32 word, u32 row) {
  const u32 stored = word >> packed_bits * place_in_word(row) & ((1U << packed_bits) - 1);
  return float(stored + (PACKING == 2 ? 1 : 0) & 255);
}

GRETA_DEVICE WeightChunk load_stored_chunk(const Weights& weights, u32 rows, u32 row, u32 index, u32) {
  constexpr u32 words = CHUNK_WEIGHTS / of_word, lines = PACKING == 1 ? CHUNK_WEIGHTS : words;
  const u32 width = PACKING == 1 ? rows / 8 : rows, column = PACKING == 1 ? row / 8 : row;
  const u8* const from = weights.integers + (u64(index * lines) * width + column) * 4;
  WeightChunk chunk = {};
  u32 word[words] = {};
  GRETA_UNROLL
  for (u32 i = 0; i < words; ++i) {
#if PACKING == 1
    GRETA_UNROLL
    for (u32 j = 0; j < 8; ++j)
      word[i] |= (word_at(from, u64(8 * i + j) * width) >> 4 * place_in_word(row) & 15U) << 4 * j;
#else
    word[i] = word_at(from, u64(i) * width);
#endif
  }
#if FORMAT == 0
  GRETA_UNROLL
  for (u32 i = 0; i < 4; ++i) {
    chunk.q[2 * i] = halves_of(word[i], 0);
    chunk.q[2 * i + 1] = halves_of(word[i], 4);
  }
#else
  GRETA_UNROLL
  for (u32 i = 0; i < 8; ++i) chunk.q[i] = word[i];
#endif
  chunk.zero = implied_zero;
  const u64 group = index * CHUNK_WEIGHTS / GROUP;
  chunk.scale[0] = scale_value(weights.scales[group * rows + row]);
#if ZEROS
  chunk.zero = zero_point(word_at(weights.zeros, group * (rows / of_word) + row / of_word), row);
#endif
  return chunk;
}
#endif
