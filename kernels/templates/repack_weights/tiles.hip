// Weights that AWQ or GPTQ packed, as rows of integers, scales and zero points of quantized_gemm, or
// as panels of such rows (kernels/model/weight_panels.hpp); also rows as panels. The first `tiles`
// workgroups transpose tiles of TILE_N rows and TILE_K weights of words through shared memory; the
// others transpose scales and zero points, a thread four of each.
//
//   AWQ        a word has nibbles of 8 rows; else integers of consecutive k of one row
//   FROM_ROWS  qweight has rows of weights, and there are no scales
//   PANELS     of 16 rows are stored, units of 16 bytes of each row one after the other
//   BITS       of an integer
//   ORDERED    weight i of a row is the stored weight order[i]
//   FLIP       integers become signed: their highest bits change
#include "common/in_out.hip"

#if !defined(THREADS) || !defined(TILE_N) || !defined(TILE_K) || !defined(VEC) || !defined(STORE)
#error "THREADS, TILE_N, TILE_K, VEC and STORE must be defined"
#endif
#if !defined(AWQ) || !defined(BITS) || !defined(GROUP) || !defined(ZEROS) || !defined(ZERO_OFFSET) || \
    !defined(ORDERED) || !defined(FLIP) || !defined(FROM_ROWS) || !defined(PANELS)
#error "AWQ, BITS, GROUP, ZEROS, ZERO_OFFSET, ORDERED, FLIP, FROM_ROWS and PANELS must be defined"
#endif
#if FROM_ROWS && (AWQ || ORDERED || FLIP || !PANELS)
#error "rows become panels as they are"
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

// Where B has a word of a row of `width` words.
GRETA_DEVICE u64 place_of_word(u32 row, u32 word, u32 width) {
  if (!PANELS) return u64(row) * width + word;
  return u64(row / 16 * 16) * width + (word / 4 * 64 + row % 16 * 4 + word % 4);
}

// A word of a tile.
struct Place {
  u32 row, word;
};

// The first word of load i, of those along lines of qweight, and of store i, of those along B.
GRETA_DEVICE Place load_place(u32 i) {
  if (FROM_ROWS) return {i / (row_words / VEC), i % (row_words / VEC) * VEC};
  return {i % (columns / VEC) * VEC, i / (columns / VEC)};
}
GRETA_DEVICE Place store_place(u32 i) {
  if (!PANELS) return {i / (row_words / STORE), i % (row_words / STORE) * STORE};
  const u32 at = i * STORE, unit = at / 64;  // of 16 rows
  return {unit / (row_words / 4) * 16 + at / 4 % 16, unit % (row_words / 4) * 4 + at % 4};
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
#elif FROM_ROWS
// Words `word` to word + VEC - 1 of a row.
GRETA_DEVICE void unpack(const Arguments& args, u32* tile, u32 first_row, u32 first_word, u32 row, u32 word) {
  const u64 from = u64(first_row + row) * (args.k / of_word) + first_word + word;
  const auto words = load_words<4 * VEC>(args.qweight + from);
  GRETA_UNROLL
  for (u32 v = 0; v < VEC; ++v) tile[place(row, word + v)] = words.word[v];
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
    const Place at = load_place(i);
    if (first_word + at.word < width && first_row + at.row * (AWQ ? 8 : 1) < args.n)
      unpack(args, tile, first_row, first_word, at.row, at.word);
  }
  block_barrier();
  GRETA_UNROLL
  for (u32 first = 0; first < stores; first += THREADS) {
    const u32 i = first + thread_index();
    if (stores < THREADS && i >= stores) continue;
    const auto [row, word] = store_place(i);
    if (first_row + row >= args.n || first_word + word >= width) continue;
    Words<4 * STORE> words;
    GRETA_UNROLL
    for (u32 j = 0; j < STORE; ++j) words.word[j] = tile[place(row, word + j)];
    store_words(args.b + place_of_word(first_row + row, first_word + word, width), words);
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
  } else if (!FROM_ROWS) {
    const u32 groups = k / GROUP, four = (block - tiles) * THREADS + thread_index();
    if (four < n / 4 * groups) transpose_groups(qscales, qzeros, scales, zeros, n, groups, four * 4);
  }
}
