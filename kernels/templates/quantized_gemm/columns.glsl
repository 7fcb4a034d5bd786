// Chunks of 32 weights of the TN neighbouring columns of the product that a thread has: a chunk of a row of B for
// each column, or with ACROSS whole words of AWQ or GPTQ, which neighbouring threads continue. As in columns.hip.
#pragma once

#if !defined(ACROSS) || !defined(TN)
#error "ACROSS and TN must be defined"
#endif

#include "quantized_gemm/epilogue.glsl"
#include "quantized_gemm/stored_weights.glsl"

#if !ACROSS
struct Columns {
  WeightChunk chunk[TN];
};

// Columns past the last one repeat it.
Columns load_columns(uint first, uint index) {
  Columns columns;
  [[unroll]] for (uint t = 0; t < TN; ++t)
    columns.chunk[t] = load_stored_chunk(args.b, args.scales, args.zeros, product_columns(),
                                         line_of_column(min(first + t, product_columns() - 1)), index, args.k);
  return columns;
}

float column_weight(Columns columns, uint t, uint i) { return weight_of(columns.chunk[t], i); }
float column_scale(Columns columns, uint t, uint segment) { return scale_of(columns.chunk[t], segment); }

#else
#if !PACKING || PANELS
#error "ACROSS=1 is for words of AWQ and GPTQ"
#endif

#if GATED
#define RUNS 2  // of neighbouring rows of B: all, or those of gates and of ups
#else
#define RUNS 1
#endif
#if PACKING == 1
#define ROWS_OF_WORD 8  // of a word of weights
#else
#define ROWS_OF_WORD 1
#endif
#define RUN (TN / RUNS)
#define RUN_WORDS (RUN / ROWS_OF_WORD)
#define WORD_LINES (PACKING == 1 ? CHUNK_WEIGHTS : CHUNK_WEIGHTS / OF_WORD)
#if TN % (RUNS * ROWS_OF_WORD) != 0
#error "a thread has whole words"
#endif

struct Columns {
  uint word[WORD_LINES * RUNS * RUN_WORDS];
  float scales[TN], zeros[TN];
};

// n is a multiple of the run. Columns past the last one repeat the last ones.
Columns load_columns(uint first, uint index) {
  Columns columns;
  const uint rows = product_columns(), width = rows / ROWS_OF_WORD, group = index * CHUNK_WEIGHTS / GROUP;
  [[unroll]] for (uint r = 0; r < RUNS; ++r) {
    const uint row = line_of_column(min(first, rows - TN) + r);
    const uint64_t from = args.b + (uint64_t(index * WORD_LINES) * width + row / ROWS_OF_WORD) * 4;
    [[unroll]] for (uint i = 0; i < WORD_LINES; ++i) {
      const uint64_t line = from + uint64_t(i) * width * 4;
      const uint at = (i * RUNS + r) * RUN_WORDS;
#if TN / (RUNS * ROWS_OF_WORD) >= 4
      [[unroll]] for (uint w = 0; w < RUN_WORDS; w += 4) {
        const uvec4 quad = Quad(line + w * 4).v;
        [[unroll]] for (uint j = 0; j < 4; ++j) columns.word[at + w + j] = quad[j];
      }
#else
      [[unroll]] for (uint w = 0; w < RUN_WORDS; ++w) columns.word[at + w] = word_at(line, w);
#endif
    }
    const uint64_t scales = args.scales + (uint64_t(group) * rows + row) * 2;
    [[unroll]] for (uint j = 0; j < RUN; ++j) columns.scales[r * RUN + j] = load_scale(scales + j * 2);
    uint stored = 0;
    [[unroll]] for (uint j = 0; j < RUN; ++j) {
#if ZEROS
      if (j % OF_WORD == 0)
        stored = word_at(args.zeros, uint64_t(group) * (rows / OF_WORD) + (row + j) / OF_WORD);
      columns.zeros[r * RUN + j] = zero_point(stored, row + j);
#else
      columns.zeros[r * RUN + j] = IMPLIED_ZERO;
#endif
    }
  }
  return columns;
}

// Weight i of column t, without its scale.
float column_weight(Columns columns, uint t, uint i) {
  const uint r = t % RUNS, j = t / RUNS;
#if PACKING == 1
  const uint place = place_in_word(j), word = columns.word[(i * RUNS + r) * RUN_WORDS + j / 8];
#else
  const uint place = i % OF_WORD, word = columns.word[(i / OF_WORD * RUNS + r) * RUN_WORDS + j];
#endif
  return float(word >> PACKED_BITS * place & ((1u << PACKED_BITS) - 1u)) - columns.zeros[r * RUN + j];
}

float column_scale(Columns columns, uint t, uint) { return columns.scales[t % RUNS * RUN + t / RUNS]; }
#endif
