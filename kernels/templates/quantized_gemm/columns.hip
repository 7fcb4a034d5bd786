// Chunks of 32 weights of the TN neighbouring columns of the product that a thread has: a chunk of a row of B for
// each column, or with ACROSS whole words of AWQ or GPTQ, which neighbouring threads continue.
#pragma once

#if !defined(ACROSS) || !defined(TN)
#error "ACROSS and TN must be defined"
#endif

#include "quantized_gemm/epilogue.hip"
#include "quantized_gemm/stored_weights.hip"

#if !ACROSS
struct Columns {
  WeightChunk chunk[TN];

  // Columns past the last one repeat it.
  GRETA_DEVICE void load(const Weights& weights, u32 first, u32 index, u32 n, u32 k) {
    GRETA_UNROLL
    for (u32 t = 0; t < TN; ++t) {
      const u32 col = smaller(first + t, product_columns(n) - 1);
      chunk[t] = load_stored_chunk(weights, product_columns(n), line_of_column(col, n), index, k);
    }
  }

  // Eight neighbours of column t, from weight 8 e on, without their scale.
  GRETA_DEVICE void eight(u32 t, u32 e, float (&weight)[8]) const { weight8(chunk[t], e, weight); }
  GRETA_DEVICE float scale(u32 t, u32 segment) const { return scale_of(chunk[t], segment); }
};

#else
#if !PACKING || PANELS
#error "ACROSS=1 is for words of AWQ and GPTQ"
#endif

constexpr u32 runs = GATED ? 2 : 1, run = TN / runs;  // of neighbouring rows of B: all, or those of gates and of ups
constexpr u32 rows_of_word = PACKING == 1 ? 8 : 1;     // of a word of weights
static_assert(run % rows_of_word == 0, "a thread has whole words");

struct Columns {
  static constexpr u32 lines = PACKING == 1 ? CHUNK_WEIGHTS : CHUNK_WEIGHTS / of_word;
  static constexpr u32 words = run / rows_of_word, width = words < 4 ? words : 4;  // of a run; of a load

  u32 word[lines][runs][words];
  float scales[runs][run], zeros[runs][run];

  // n is a multiple of the run. Columns past the last one repeat the last ones.
  GRETA_DEVICE void load(const Weights& weights, u32 first, u32 index, u32 n, u32) {
    const u32 rows = product_columns(n), width_of_b = rows / rows_of_word;
    const u32 group = index * CHUNK_WEIGHTS / GROUP;
    GRETA_UNROLL
    for (u32 r = 0; r < runs; ++r) {
      const u32 row = line_of_column(smaller(first, rows - TN) + r, n);
      const u8* const from = weights.integers + (u64(index * lines) * width_of_b + row / rows_of_word) * 4;
      GRETA_UNROLL
      for (u32 i = 0; i < lines; ++i) {
        GRETA_UNROLL
        for (u32 w = 0; w < words; w += width) {
          const auto loaded = load_words<4 * width>(from + (u64(i) * width_of_b + w) * 4);
          GRETA_UNROLL
          for (u32 j = 0; j < width; ++j) word[i][r][w + j] = loaded.word[j];
        }
      }
      load_groups(weights, r, row, group, rows);
    }
  }

  GRETA_DEVICE void load_groups(const Weights& weights, u32 r, u32 row, u32 group, u32 rows) {
    constexpr int together = run < 8 ? run : 8;
    GRETA_UNROLL
    for (u32 j = 0; j < run; j += together) {
      const auto pack = load_pack<together>(weights.scales + (u64(group) * rows + row + j));
      GRETA_UNROLL
      for (u32 i = 0; i < together; ++i) scales[r][j + i] = element(pack, i);
    }
    u32 stored = 0;
    GRETA_UNROLL
    for (u32 j = 0; j < run; ++j) {
#if ZEROS
      if (j % of_word == 0) stored = word_at(weights.zeros, u64(group) * (rows / of_word) + (row + j) / of_word);
      zeros[r][j] = zero_point(stored, row + j);
#else
      zeros[r][j] = implied_zero;
#endif
    }
  }

  GRETA_DEVICE void eight(u32 t, u32 e, float (&weight)[8]) const {
    const u32 r = t % runs, j = t / runs;
    GRETA_UNROLL
    for (u32 i = 0; i < 8; ++i) {
#if PACKING == 1
      const u32 place = place_in_word(j), of_row = word[8 * e + i][r][j / 8];
#else
      const u32 place = i % of_word, of_row = word[(8 * e + i) / of_word][r][j];
#endif
      // Of 4 bits, bytes are those of even places or of odd ones.
      const u32 bytes = packed_bits == 8 ? of_row : halves_of(of_row, place % 2 * 4);
      weight[i] = byte_above(bytes, packed_bits == 8 ? place : place / 2, zeros[r][j]);
    }
  }

  GRETA_DEVICE float scale(u32 t, u32) const { return scales[t % runs][t / runs]; }
};
#endif
