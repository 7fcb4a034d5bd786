// Products with quantised weights by matrix cores, for formats with scales of fewer than 128 weights: the
// blocks of GGUF files, mxfp4, and groups of 32 and 64. A workgroup has TN x 16 columns and RT x 16 rows of
// C. Its WAVES divide K among themselves in segments of 32 weights, each with UNROLL segments in flight,
// and add their sums through shared memory in the end. Weights pass no shared memory.
//
// The lanes that share a line have eights of a segment in turn. A segment's sums are scaled in registers.
// In q6_k, halves of a segment have scales of their own: each half is multiplied with zeros in place of
// the other one. Weights of q4_k are scale (q - c) + rest (centred() in pairs.hip), and a product with ones
// yields the sums of A for the rest.

#if !defined(UNROLL) || UNROLL < 1
#error "UNROLL must be defined and at least 1"
#endif

#include "quantized_gemm/products.hip"

constexpr u32 segment_weights = CHUNK_WEIGHTS, eights = 4 / parts;

// The number among a segment's eights of the lane's eight e.
GRETA_DEVICE u32 eight_of_lane(u32 e) { return e * parts + part_of_lane(); }

// A lane's part of a segment of a line: bytes of integers, in their order.
struct Segment {
  u32 word[eights][2];
  float scale[SEGMENTS];
  float rest;  // with MINIMA
  u32 zero;
};

// Four integers of four bits, in half a word, as bytes.
GRETA_DEVICE u32 four_bytes(u32 word, u32 half) {
  const u32 codes = word >> 16 * half, apart = (codes & 0xffU) | (codes & 0xff00U) << 8;
  return (apart & 0x000f000fU) | (apart & 0x00f000f0U) << 4;
}

#if SCALES_BESIDE
GRETA_DEVICE Segment load_segment(const Weights& weights, u32 line, u32 index, u32 k) {
  Segment segment;
  GRETA_UNROLL
  for (u32 e = 0; e < eights; ++e) {
    const u8* const from =
        weights.integers + place_of_weights(line, k, index * segment_weights, eight_of_lane(e) * 8);
#if FORMAT == 1
    const auto words = load_words<8>(from);
    GRETA_UNROLL
    for (u32 i = 0; i < 2; ++i) segment.word[e][i] = ZEROS ? words.word[i] : words.word[i] ^ 0x80808080U;
#else
    const u32 word = load_words<4>(from).word[0];
    GRETA_UNROLL
    for (u32 i = 0; i < 2; ++i) {
#if FORMAT == 6
      segment.word[e][i] = four_of_e2m1(word, i);
#else
      segment.word[e][i] = four_bytes(word, i);
#endif
    }
#endif
  }
  const u64 group = u64(line) * (k / GROUP) + index * segment_weights / GROUP;
  const float scale = scale_value(weights.scales[group]);
  segment.scale[0] = FORMAT == 6 ? 0.5f * scale : scale;  // of twice the numbers
  segment.zero = ZEROS ? weights.zeros[group] : FORMAT == 0 ? 8 : FORMAT == 1 ? 128 : 12;
  return segment;
}

#elif FORMAT < 4
GRETA_DEVICE Segment load_segment(const Weights& weights, u32 line, u32 index, u32 k) {
  constexpr u32 block_bytes = FORMAT == 2 ? 18 : 34;
  const u8* const block = weights.integers + (u64(line) * (k / segment_weights) + index) * block_bytes;
  Segment segment;
  segment.scale[0] = load_f16(block);
  segment.zero = FORMAT == 2 ? 8 : 128;
  GRETA_UNROLL
  for (u32 e = 0; e < eights; ++e) {
    const u32 eight = eight_of_lane(e);
    load_halves(block + 2 + (FORMAT == 2 ? eight % 2 : eight) * 8, segment.word[e]);
    GRETA_UNROLL
    for (u32 i = 0; i < 2; ++i) {
      u32& word = segment.word[e][i];
      word = FORMAT == 2 ? halves_of(word, eight / 2 * 4) : word ^ 0x80808080U;
    }
  }
  return segment;
}

#else
GRETA_DEVICE Segment load_segment(const Weights& weights, u32 line, u32 index, u32 k) {
  constexpr u32 block_bytes = FORMAT == 4 ? 144 : 210;
  const u8* const block = weights.integers + (u64(line) * (k / 256) + index / 8) * block_bytes;
  const u32 part = index % 8;
  Segment segment;
#if FORMAT == 4
  const PartScale of_block = scale_of_part(block, part);
  const Centred of_part = centred(of_block.scale, of_block.minimum);
  segment.scale[0] = of_part.scale;
  segment.rest = of_part.rest;
  segment.zero = of_part.centre;
  GRETA_UNROLL
  for (u32 e = 0; e < eights; ++e) {
    const auto words = load_words<8>(block + 16 + part / 2 * 32 + eight_of_lane(e) * 8);
    GRETA_UNROLL
    for (u32 i = 0; i < 2; ++i) segment.word[e][i] = halves_of(words.word[i], part % 2 * 4);
  }
#else
  const u32 half = part / 4, quarter = part % 4;
  GRETA_UNROLL
  for (u32 e = 0; e < eights; ++e) {
    u32 low[2], high[2];
    load_halves(block + half * 64 + quarter % 2 * 32 + eight_of_lane(e) * 8, low);
    load_halves(block + 128 + half * 32 + eight_of_lane(e) * 8, high);
    GRETA_UNROLL
    for (u32 i = 0; i < 2; ++i) {
      segment.word[e][i] = halves_of(low[i], quarter / 2 * 4) | (high[i] >> 2 * quarter & 0x03030303U) << 4;
    }
  }
  const float scale = load_f16(block + 208);
  GRETA_UNROLL
  for (u32 s = 0; s < SEGMENTS; ++s) {
    segment.scale[s] = scale * float(static_cast<signed char>(block[192 + 2 * part + s]));
  }
  segment.zero = 32;
#endif
  return segment;
}
#endif

// Eight integers less the zero point, as elements of A's type.
GRETA_DEVICE Eight elements(const u32 (&bytes)[2], u32 zero) {
  constexpr bool small = FORMAT != 1 && FORMAT != 3 && !ZEROS;  // a zero point may be any byte
  Eight eight;
  GRETA_UNROLL
  for (u32 i = 0; i < 4; ++i) {
    const u32 two = bytes[i / 2] >> 16 * (i % 2);
    eight.word[i] = elements_of<small>((two & 0xffU) | (two & 0xff00U) << 8, zero);
  }
  return eight;
}

struct Weights32 {
  Eight eight[lane_lines][eights];
};

// The weights of a segment whose scale is number s; zeros for others.
GRETA_DEVICE Weights32 with_scale(const Weights32& weights, u32 s) {
  Weights32 some = weights;
#if SEGMENTS == 2
  GRETA_UNROLL
  for (u32 i = 0; i < lane_lines * eights * 4; ++i) {
    const u32 e = i / 4 % eights;
    if (eight_of_lane(e) / 2 != s) some.eight[i / (4 * eights)][e].word[i % 4] = 0;
  }
#endif
  return some;
}

// Adds the products of a segment of a tile's lines with rows of A, scaled.
GRETA_DEVICE void add_segment(const Segment (&segment)[lane_lines], const Weights32& weights,
                              const Eight (&rows)[row_lines][eights], Sums& total) {
  GRETA_UNROLL
  for (u32 s = 0; s < SEGMENTS; ++s) {
    Sums part = {};
    add_products(part, with_scale(weights, s).eight, rows);
    float scale[lane_lines];
    GRETA_UNROLL
    for (u32 i = 0; i < lane_lines; ++i) scale[i] = segment[i].scale[s];
    add_scaled(total, part, scale);
  }
#if MINIMA
  Weights32 ones;
  GRETA_UNROLL
  for (u32 i = 0; i < lane_lines * eights * 4; ++i) {
    ones.eight[i / (4 * eights)][i / 4 % eights].word[i % 4] = IN_F16 ? 0x3c003c00U : 0x3f803f80U;
  }
  Sums part = {};
  add_products(part, ones.eight, rows);
  float rest[lane_lines];
  GRETA_UNROLL
  for (u32 i = 0; i < lane_lines; ++i) rest[i] = segment[i].rest;
  add_scaled(total, part, rest);
#endif
}

GRETA_KERNEL(THREADS)
QUANTIZED_ENTRY(matrix_segments)
(const In* GRETA_READ a, const u8* GRETA_READ b, const Scale* GRETA_READ scales,
 const u8* GRETA_READ zeros, const Out* GRETA_READ added, Out* __restrict__ c, u32 m, u32 n, u32 k,
 u32 tiles_n GROUP_PARAMETERS) {
  // No begin_launch(): see device.hip.
  GRETA_SHARED(float, sums, WAVES * floats_of_sums);
  const u32 block = block_index<THREADS>(), tile_row = FEW_ROWS ? 0 : block / tiles_n;
  const Group group = group_of_line<RT * 16>(ALL_ROWS, tile_row);
  const u32 first_row = group.row, first_col = (block - tile_row * tiles_n) * (TN * 16);
  if (first_row >= group.rows || first_col >= product_columns(n)) return;  // of the whole workgroup
  a += u64(group.first) * k;
  c += u64(group.first) * n;
  m = group.rows;
  const u32 segments = k / segment_weights;
  const Weights weights = {b, scales, zeros};

  // Lanes past the last row or column repeat it.
  const In* row[RT][row_lines];
  GRETA_UNROLL
  for (u32 i = 0; i < RT * row_lines; ++i) {
    const u32 at = first_row + i / row_lines * 16 + i % row_lines * 8 + line_of_lane();
    row[i / row_lines][i % row_lines] = a + u64(smaller(at, m - 1)) * k;
  }
  u32 line[TN][lane_lines];
  GRETA_UNROLL
  for (u32 i = 0; i < TN * lane_lines; ++i) {
    const u32 of_tile = first_col + i / lane_lines * 16 + i % lane_lines * 8 + line_of_lane();
    line[i / lane_lines][i % lane_lines] =
        first_line_of(group, n) + line_of_column(smaller(of_tile, product_columns(n) - 1), n);
  }
  Sums total[RT][TN] = {};
  for (u32 first = wave_index() * UNROLL; first < segments; first += WAVES * UNROLL) {
    Segment segment[UNROLL][TN][lane_lines];
    GRETA_UNROLL
    for (u32 i = 0; i < UNROLL * TN * lane_lines; ++i) {
      const u32 u = i / (TN * lane_lines), t = i / lane_lines % TN, l = i % lane_lines;
      segment[u][t][l] = load_segment(weights, line[t][l], smaller(first + u, segments - 1), k);
    }
    GRETA_UNROLL
    for (u32 u = 0; u < UNROLL; ++u) {
      if (first + u >= segments) break;  // of the whole wave
      Weights32 operand[TN];
      GRETA_UNROLL
      for (u32 i = 0; i < TN * lane_lines * eights; ++i) {
        const u32 t = i / (lane_lines * eights), l = i / eights % lane_lines, e = i % eights;
        operand[t].eight[l][e] = elements(segment[u][t][l].word[e], segment[u][t][l].zero);
      }
      GRETA_UNROLL
      for (u32 r = 0; r < RT; ++r) {
        Eight rows[row_lines][eights];
        GRETA_UNROLL
        for (u32 i = 0; i < row_lines * eights; ++i) {
          const In* const from = row[r][i / eights] + (first + u) * segment_weights;
          const Words<16> words = load_now<true>(from + eight_of_lane(i % eights) * 8);
          rows[i / eights][i % eights] = {{words.word[0], words.word[1], words.word[2], words.word[3]}};
        }
        GRETA_UNROLL
        for (u32 t = 0; t < TN; ++t) add_segment(segment[u][t], operand[t], rows, total[r][t]);
      }
    }
  }
  store_tiles(total, sums, c, added, first_row, first_col, m, n);
}
