// Quantised weights in chunks of CHUNK_WEIGHTS of a row, of which B has rows, or panels of rows, or words as AWQ and
// GPTQ pack them: as in stored_weights.hip, where PACKING is described.
#pragma once

#if !defined(PACKING) || PACKING < 0 || PACKING > 4
#error "PACKING must be 0 to 4"
#endif

#include "quantized_gemm/weights.glsl"

#if !PACKING || PANELS
// `rows`: of all of B.
WeightChunk load_stored_chunk(uint64_t integers, uint64_t scales, uint64_t zeros, uint rows, uint row, uint index,
                              uint k) {
  return load_chunk(integers, scales, zeros, row, index, k);
}
#else
#if FORMAT > 1 || PACKING == 1 && FORMAT != 0
#error "packed integers have 4 bits, those of GPTQ 4 or 8"
#endif

#define PACKED_BITS (FORMAT == 0 ? 4 : 8)
#define OF_WORD (32 / PACKED_BITS)

// The place of a row's integer in a word of neighbouring rows.
uint place_in_word(uint row) {
  const uint index = row % OF_WORD;
  return PACKING == 1 ? index / 2 + index % 2 * 4 : index;
}

uint word_at(uint64_t words, uint64_t index) { return Word(words + index * 4).v; }

#define IMPLIED_ZERO float(1 << (PACKED_BITS - 1))  // where no zero points are given

// The zero point of a row in a word of those of neighbouring rows.
float zero_point(uint word, uint row) {
  const uint stored = word >> PACKED_BITS * place_in_word(row) & ((1u << PACKED_BITS) - 1u);
  return float(stored + (PACKING == 2 ? 1u : 0u) & 255u);
}

WeightChunk load_stored_chunk(uint64_t integers, uint64_t scales, uint64_t zeros, uint rows, uint row, uint index,
                              uint k) {
  WeightChunk chunk;
  uint word[CHUNK_WEIGHTS / OF_WORD];
  [[unroll]] for (uint i = 0; i < CHUNK_WEIGHTS / OF_WORD; ++i) {
#if PACKING == 1
    word[i] = 0;
    [[unroll]] for (uint j = 0; j < 8; ++j) {
      const uint64_t line = index * CHUNK_WEIGHTS + 8 * i + j;
      const uint of_rows = word_at(integers, line * (rows / 8) + row / 8);
      word[i] |= (of_rows >> 4 * place_in_word(row) & 15u) << 4 * j;
    }
#else
    word[i] = word_at(integers, uint64_t(index * (CHUNK_WEIGHTS / OF_WORD) + i) * rows + row);
#endif
  }
#if FORMAT == 0
  [[unroll]] for (uint i = 0; i < CHUNK_WEIGHTS / OF_WORD; ++i) {
    chunk.q[2 * i] = halves_of(word[i], 0);
    chunk.q[2 * i + 1] = halves_of(word[i], 4);
  }
#else
  [[unroll]] for (uint i = 0; i < CHUNK_WEIGHTS / OF_WORD; ++i) chunk.q[i] = word[i];
#endif
  chunk.zero = IMPLIED_ZERO;
  const uint64_t group = index * CHUNK_WEIGHTS / GROUP;
  chunk.scale[0] = load_scale(scales + (group * rows + row) * 2);
#if ZEROS
  chunk.zero = zero_point(word_at(zeros, group * (rows / OF_WORD) + row / OF_WORD), row);
#endif
  return chunk;
}
#endif
