// Weights that AWQ or GPTQ packed, as rows of integers, scales and zero points of quantized_gemm
// (kernels/model/weight_packing.hpp). The first `tiles` workgroups transpose tiles of TILE_N rows and TILE_K
// weights of words through shared memory; the others transpose scales and zero points, a thread four of each.
//
//   AWQ      a word has nibbles of 8 rows; else integers of consecutive k of one row
//   BITS     of an integer
//   ORDERED  weight i of a row is the stored weight order[i]
//   FLIP     integers become signed: their highest bits change
#include "common/in_out.hip"

#if !defined(THREADS) || !defined(TILE_N) || !defined(TILE_K) || !defined(VEC) || !defined(STORE)
#error "THREADS, TILE_N, TILE_K, VEC and STORE must be defined"
#endif
#if !defined(AWQ) || !defined(BITS) || !defined(GROUP) || !defined(ZEROS) || !defined(ZERO_OFFSET) || \
    !defined(ORDERED) || !defined(FLIP)
#error "AWQ, BITS, GROUP, ZEROS, ZERO_OFFSET, ORDERED and FLIP must be defined"
#endif
#if AWQ && BITS != 4
#error "words of AWQ have 8 integers"
#endif

constexpr u32 of_word = 32 / BITS;
constexpr u32 word_mask = (1ULL << BITS) - 1;
constexpr u32 row_words = TILE_K / of_word;           // of a row of the tile
constexpr u32 columns = AWQ ? TILE_N / 8 : TILE_N;    // words of a line of the stored tile
constexpr u32 tile_bytes = (TILE_N * (row_words + 1) + TILE_N / 8) * 4;

struct Arguments {
  const u32* qweight;
  const int* order;
  u32* b;
  u32 n, k;
};

// Lanes that write words of neighbouring rows, or of every eighth one, hit different banks.
GRETA_DEVICE u32 place(u32 row, u32 word) { return row * (row_words + 1) + row / 8 + word; }

// The number of the stored weight that is weight `index` of a row.
GRETA_DEVICE u32 stored_weight(const Arguments& args, u32 index) {
  return ORDERED ? u32(args.order[index]) : index;
}

GRETA_DEVICE Words<4 * VEC> load_line(const Arguments& args, u32 line, u32 column) {
  const u32 width = AWQ ? args.n / 8 : args.n;
  return load_words<4 * VEC>(args.qweight + u64(line) * width + column);
}

#if AWQ
// Words of 8 lines become words of 8 places: a transpose of nibbles.
GRETA_DEVICE void transpose(u32 (&word)[8]) {
  constexpr u32 masks[3] = {0x0000ffffU, 0x00ff00ffU, 0x0f0f0f0fU};
  GRETA_UNROLL
  for (u32 stage = 0; stage < 3; ++stage) {
    const u32 apart = 4 >> stage, shift = 16 >> stage;
    GRETA_UNROLL
    for (u32 i = 0; i < 8; ++i) {
      if ((i & apart) != 0) continue;
      const u32 swapped = (word[i] >> shift ^ word[i + apart]) & masks[stage];
      word[i + apart] ^= swapped;
      word[i] ^= swapped << shift;
    }
  }
}

// Words `word` of 8 VEC rows.
GRETA_DEVICE void unpack(const Arguments& args, u32* tile, u32 first_row, u32 first_word, u32 column,
                         u32 word) {
  Words<4 * VEC> line[8] = {};
  GRETA_UNROLL
  for (u32 j = 0; j < 8; ++j) {
    const u32 from = stored_weight(args, (first_word + word) * 8 + j);
    if (from < args.k) line[j] = load_line(args, from, first_row / 8 + column);
  }
  GRETA_UNROLL
  for (u32 v = 0; v < VEC; ++v) {
    u32 words[8];
    GRETA_UNROLL
    for (u32 j = 0; j < 8; ++j) words[j] = line[j].word[v];
    transpose(words);
    GRETA_UNROLL
    for (u32 e = 0; e < 8; ++e)
      tile[place((column + v) * 8 + e, word)] = words[e / 2 + e % 2 * 4];
  }
}
#else
// Words `word` of VEC rows.
GRETA_DEVICE void unpack(const Arguments& args, u32* tile, u32 first_row, u32 first_word, u32 column,
                         u32 word) {
  Words<4 * VEC> words = {};
#if ORDERED
  GRETA_UNROLL
  for (u32 j = 0; j < of_word; ++j) {
    const u32 from = stored_weight(args, (first_word + word) * of_word + j);
    if (from >= args.k) continue;
    const auto line = load_line(args, from / of_word, first_row + column);
    GRETA_UNROLL
    for (u32 v = 0; v < VEC; ++v)
      words.word[v] |= (line.word[v] >> from % of_word * BITS & word_mask) << j * BITS;
  }
#else
  words = load_line(args, first_word + word, first_row + column);
#endif
  GRETA_UNROLL
  for (u32 v = 0; v < VEC; ++v)
    tile[place(column + v, word)] = words.word[v] ^ (FLIP ? 0x80808080U : 0U);
}
#endif

GRETA_DEVICE void transpose_tile(const Arguments& args, u32* tile, u32 index) {
  const u32 width = args.k / of_word, across = (args.k + TILE_K - 1) / TILE_K;
  const u32 first_row = index / across * TILE_N, first_word = index % across * row_words;
  constexpr u32 loads = row_words * columns / VEC, stores = TILE_N * row_words / STORE;
  GRETA_UNROLL
  for (u32 first = 0; first < loads; first += THREADS) {
    const u32 i = first + thread_index();
    if (loads < THREADS && i >= loads) continue;
    const u32 word = i / (columns / VEC), column = i % (columns / VEC) * VEC;
    if (first_word + word < width && first_row + column * (AWQ ? 8 : 1) < args.n)
      unpack(args, tile, first_row, first_word, column, word);
  }
  block_barrier();
  GRETA_UNROLL
  for (u32 first = 0; first < stores; first += THREADS) {
    const u32 i = first + thread_index();
    if (stores < THREADS && i >= stores) continue;
    const u32 row = i / (row_words / STORE), word = i % (row_words / STORE) * STORE;
    if (first_row + row >= args.n || first_word + word >= width) continue;
    Words<4 * STORE> words;
    GRETA_UNROLL
    for (u32 j = 0; j < STORE; ++j) words.word[j] = tile[place(row, word + j)];
    store_words(args.b + u64(first_row + row) * width + first_word + word, words);
  }
}

GRETA_DEVICE u32 scale_bits(In scale) {
  if constexpr (same_type<In, Out>) {
    return scale.bits;
  } else {
    return narrow<Out>(to_float(scale)).bits;
  }
}

GRETA_DEVICE u32 zero_point(const u32* qzeros, u32 n, u32 row, u32 group) {
  const u32 index = row % of_word;
  const u32 at = AWQ ? index / 2 + index % 2 * 4 : index;
  const u32 word = qzeros[u64(group) * (n / of_word) + row / of_word];
  return (word >> at * BITS & word_mask) + ZERO_OFFSET & 255;
}

// Scales and zero points `first` to first + 3 of all rows.
GRETA_DEVICE void transpose_groups(const In* qscales, const u32* qzeros, Out* scales, u32* zeros, u32 n,
                                   u32 groups, u32 first) {
  Words<8> four = {};
  u32 bytes = 0;
  GRETA_UNROLL
  for (u32 j = 0; j < 4; ++j) {
    const u32 row = (first + j) / groups, group = (first + j) % groups;
    four.word[j / 2] |= scale_bits(qscales[u64(group) * n + row]) << j % 2 * 16;
    if (ZEROS) bytes |= zero_point(qzeros, n, row, group) << 8 * j;
  }
  store_words(scales + first, four);
  if (ZEROS) zeros[first / 4] = bytes;
}

GRETA_KERNEL(THREADS)
repack_weights_tiles(const u32* GRETA_READ qweight, const In* GRETA_READ qscales,
                     const u32* GRETA_READ qzeros, const int* GRETA_READ order, u32* __restrict__ b,
                     Out* __restrict__ scales, u32* __restrict__ zeros, u32 n, u32 k, u32 tiles) {
  begin_launch();
  GRETA_SHARED(u32, tile, tile_bytes / 4);
  const u32 block = block_index<THREADS>();
  if (block < tiles) {
    transpose_tile({qweight, order, b, n, k}, tile, block);
  } else {
    const u32 groups = k / GROUP, four = (block - tiles) * THREADS + thread_index();
    if (four < n / 4 * groups) transpose_groups(qscales, qzeros, scales, zeros, n, groups, four * 4);
  }
}
