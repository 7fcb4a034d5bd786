#version 460
// Weights that AWQ or GPTQ packed, as rows of integers, scales and zero points, or as panels: as in tiles.hip, where
// the macros are described.

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

#include "common/in_out.glsl"

layout(local_size_x = THREADS) in;

layout(push_constant, std430) uniform Arguments {
  uint64_t qweight, qscales, qzeros, order, b, scales, zeros;
  uint n, k, tiles;
} args;

#define OF_WORD (32 / BITS)
#define WORD_MASK ((1u << BITS) - 1u)
#define ROW_WORDS (TILE_K / OF_WORD)  // of a row of the tile
#define ROWS_OF_WORD (AWQ != 0 ? 8 : 1)
#define COLUMNS (TILE_N / ROWS_OF_WORD)  // words of a line of the stored tile

shared uint tile[TILE_N * (ROW_WORDS + 1) + TILE_N / 8];

// Lanes that write words of neighbouring rows, or of every eighth one, hit different banks.
uint place(uint row, uint word) { return row * (ROW_WORDS + 1) + row / 8 + word; }

// The number of the stored weight that is weight `index` of a row.
uint stored_weight(uint index) {
#if ORDERED
  return U32(args.order + uint64_t(index) * 4).v;
#else
  return index;
#endif
}

// Where B has a word of a row of `width` words.
uint64_t place_of_word(uint row, uint word, uint width) {
#if PANELS
  return uint64_t(row / 16 * 16) * width + (word / 4 * 64 + row % 16 * 4 + word % 4);
#else
  return uint64_t(row) * width + word;
#endif
}

// The row and the first word of load i, of those along lines of qweight, and of store i, of those along B.
uvec2 load_place(uint i) {
#if FROM_ROWS
  return uvec2(i / (ROW_WORDS / VEC), i % (ROW_WORDS / VEC) * VEC);
#else
  return uvec2(i % (COLUMNS / VEC) * VEC, i / (COLUMNS / VEC));
#endif
}
uvec2 store_place(uint i) {
#if PANELS
  const uint at = i * STORE, unit = at / 64;  // of 16 rows
  return uvec2(unit / (ROW_WORDS / 4) * 16 + at / 4 % 16, unit % (ROW_WORDS / 4) * 4 + at % 4);
#else
  return uvec2(i / (ROW_WORDS / STORE), i % (ROW_WORDS / STORE) * STORE);
#endif
}

uint[VEC] load_line(uint line, uint column) {
  const uint width = FROM_ROWS != 0 ? args.k / OF_WORD : args.n / ROWS_OF_WORD;
  const uint64_t at = args.qweight + (uint64_t(line) * width + column) * 4;
#if VEC == 4
  const uvec4 words = U32x4(at).v;
  return uint[VEC](words.x, words.y, words.z, words.w);
#elif VEC == 2
  const uvec2 words = U32x2(at).v;
  return uint[VEC](words.x, words.y);
#else
  return uint[VEC](U32(at).v);
#endif
}

#if AWQ
// Words of 8 lines become words of 8 places: a transpose of nibbles.
void transpose_nibbles(inout uint word[8]) {
  const uint masks[3] = uint[3](0x0000ffffu, 0x00ff00ffu, 0x0f0f0f0fu);
  [[unroll]] for (uint stage = 0; stage < 3; ++stage) {
    const uint apart = 4 >> stage, shift = 16 >> stage;
    [[unroll]] for (uint i = 0; i < 8; ++i) {
      if ((i & apart) == 0) {
        const uint swapped = (word[i] >> shift ^ word[i + apart]) & masks[stage];
        word[i + apart] ^= swapped;
        word[i] ^= swapped << shift;
      }
    }
  }
}

// Words `word` of 8 VEC rows.
void unpack_words(uint first_row, uint first_word, uint column, uint word) {
  uint line[8][VEC];
  [[unroll]] for (uint j = 0; j < 8; ++j) {
    const uint from = stored_weight((first_word + word) * 8 + j);
    [[unroll]] for (uint v = 0; v < VEC; ++v) line[j][v] = 0;
    if (from < args.k) line[j] = load_line(from, first_row / 8 + column);
  }
  [[unroll]] for (uint v = 0; v < VEC; ++v) {
    uint words[8];
    [[unroll]] for (uint j = 0; j < 8; ++j) words[j] = line[j][v];
    transpose_nibbles(words);
    [[unroll]] for (uint e = 0; e < 8; ++e)
      tile[place((column + v) * 8 + e, word)] = words[e / 2 + e % 2 * 4];
  }
}
#elif FROM_ROWS
// Words `word` to word + VEC - 1 of a row.
void unpack_words(uint first_row, uint first_word, uint row, uint word) {
  const uint words[VEC] = load_line(first_row + row, first_word + word);
  [[unroll]] for (uint v = 0; v < VEC; ++v) tile[place(row, word + v)] = words[v];
}
#else
// Words `word` of VEC rows.
void unpack_words(uint first_row, uint first_word, uint column, uint word) {
#if ORDERED
  uint words[VEC];
  [[unroll]] for (uint v = 0; v < VEC; ++v) words[v] = 0;
  [[unroll]] for (uint j = 0; j < OF_WORD; ++j) {
    const uint from = stored_weight((first_word + word) * OF_WORD + j);
    if (from < args.k) {
      const uint line[VEC] = load_line(from / OF_WORD, first_row + column);
      [[unroll]] for (uint v = 0; v < VEC; ++v)
        words[v] |= (line[v] >> from % OF_WORD * BITS & WORD_MASK) << j * BITS;
    }
  }
#else
  const uint words[VEC] = load_line(first_word + word, first_row + column);
#endif
  [[unroll]] for (uint v = 0; v < VEC; ++v)
    tile[place(column + v, word)] = words[v] ^ (FLIP != 0 ? 0x80808080u : 0u);
}
#endif

void transpose_tile(uint index) {
  const uint width = args.k / OF_WORD, across = (args.k + TILE_K - 1) / TILE_K;
  const uint first_row = index / across * TILE_N, first_word = index % across * ROW_WORDS;
  for (uint i = gl_LocalInvocationIndex; i < ROW_WORDS * COLUMNS / VEC; i += THREADS) {
    const uvec2 at = load_place(i);
    if (first_word + at.y < width && first_row + at.x * ROWS_OF_WORD < args.n)
      unpack_words(first_row, first_word, at.x, at.y);
  }
  barrier();
  for (uint i = gl_LocalInvocationIndex; i < TILE_N * ROW_WORDS / STORE; i += THREADS) {
    const uvec2 at = store_place(i);
    const uint row = at.x, word = at.y;
    if (first_row + row < args.n && first_word + word < width) {
      const uint from = place(row, word);
      const uint64_t to = args.b + place_of_word(first_row + row, first_word + word, width) * 4;
#if STORE == 4
      U32x4(to).v = uvec4(tile[from], tile[from + 1], tile[from + 2], tile[from + 3]);
#elif STORE == 2
      U32x2(to).v = uvec2(tile[from], tile[from + 1]);
#else
      U32(to).v = tile[from];
#endif
    }
  }
}

uint zero_point(uint row, uint group) {
  const uint index = row % OF_WORD;
  const uint at = AWQ != 0 ? index / 2 + index % 2 * 4 : index;
  const uint word = U32(args.qzeros + (uint64_t(group) * (args.n / OF_WORD) + row / OF_WORD) * 4).v;
  return (word >> at * BITS & WORD_MASK) + ZERO_OFFSET & 255u;
}

// Scales and zero points `first` to first + 3 of all rows.
void transpose_groups(uint groups, uint first) {
  uvec2 four = uvec2(0);
  uint bytes = 0;
  [[unroll]] for (uint j = 0; j < 4; ++j) {
    const uint row = (first + j) / groups, group = (first + j) % groups;
    const uint64_t from = args.qscales + (uint64_t(group) * args.n + row) * 2;
#if IN_F16 == OUT_F16
    four[j / 2] |= uint(U16(from).v) << j % 2 * 16;
#else
    store_out(args.scales + uint64_t(first + j) * 2, load_in(from));
#endif
#if ZEROS
    bytes |= zero_point(row, group) << 8 * j;
#endif
  }
#if IN_F16 == OUT_F16
  U32x2(args.scales + uint64_t(first) * 2).v = four;
#endif
#if ZEROS
  U32(args.zeros + first).v = bytes;
#endif
}

void main() {
  const uint block = workgroup();
  if (block < args.tiles) {
    transpose_tile(block);
  } else if (FROM_ROWS == 0) {
    const uint groups = args.k / GROUP;
    const uint four = (block - args.tiles) * THREADS + gl_LocalInvocationIndex;
    if (four < args.n / 4 * groups) transpose_groups(groups, four * 4);
  }
}
