// Units of 128 weights whose groups, of 64 or 32, have scales of their own, for few rows of A in shared memory.
// A lane has pieces of its lines, PIECE weights each; those of the lanes that share a line follow each other and
// are a span. The pieces of a lane are of one group each.
//
// A matrix instruction adds up the products of all lanes that share a line. Where a span has several groups,
// sets of columns of the instruction keep them apart: each set has the same rows of A, and lanes whose weights are
// of another group have zeros in place of A's elements there. A lane holds the sums of two columns, which are those of
// the group of its own weights: so it needs the scales and zero points of its pieces alone. Sets are added up in the
// end.
#pragma once

#include "quantized_gemm/arranged_rows.hip"

#if !defined(PIECE) || !(PIECE == 8 || PIECE == 16 || PIECE == 32) || PIECE * 4 < GROUP
#error "PIECE is 8, 16 or 32, and four pieces are whole groups"
#endif

constexpr u32 span_weights = parts * PIECE, spans = unit_weights / span_weights;
constexpr u32 sets = span_weights / GROUP, set_rows = 8 / sets;
constexpr u32 piece_words = PIECE / (FORMAT == 0 ? 8 : 4);

GRETA_DEVICE u32 set_of_lane() { return part_of_lane() * sets / parts; }

// Words of a piece, from loads that start here (load_now() in pairs.hip). Half a sector of memory is loaded
// with the other half's, which the first-level cache has.
struct Piece {
  u32 word[piece_words];
};

GRETA_DEVICE Piece load_piece(const u8* from) {
  Piece piece;
  if constexpr (piece_words == 4) {
    const Words<16> words = load_now(from);
    GRETA_UNROLL
    for (u32 i = 0; i < piece_words; ++i) piece.word[i] = words.word[i];
  } else {
#if defined(GRETA_NVIDIA)
    if constexpr (piece_words == 2) {
      asm volatile("ld.global.L1::no_allocate.v2.b32 {%0, %1}, [%2];"
                   : "=r"(piece.word[0]), "=r"(piece.word[piece_words - 1])
                   : "l"(from));
    } else {
      asm volatile("ld.global.b32 %0, [%1];" : "=r"(piece.word[0]) : "l"(from));
    }
#else
    const auto words = load_words<4 * piece_words>(from);
    GRETA_UNROLL
    for (u32 i = 0; i < piece_words; ++i) piece.word[i] = words.word[i];
#endif
  }
  return piece;
}

// Where a lane's pieces of each tile, their scales and zero points begin.
struct Lines {
  const u8* integers[TN][lane_lines];
  const Scale* scales[TN][lane_lines];
  const u8* zeros[TN][lane_lines];
};

// Lanes past the last column repeat it.
GRETA_DEVICE Lines lines_from(const Weights& weights, u32 first_line, u32 first_col, u32 n, u32 k) {
  Lines lines;
  GRETA_UNROLL
  for (u32 i = 0; i < TN * lane_lines; ++i) {
    const u32 t = i / lane_lines, of_lane = i % lane_lines;
    const u32 of_tile = first_col + t * 16 + of_lane * 8 + line_of_lane();
    const u64 col = first_line + line_of_column(smaller(of_tile, product_columns(n) - 1), n);
    const u64 group = col * (k / GROUP) + set_of_lane();
    lines.integers[t][of_lane] =
        weights.integers + place_of_weights(col, k) + place_in_row(bytes_of_weights(part_of_lane() * PIECE));
    lines.scales[t][of_lane] = weights.scales + group;
    lines.zeros[t][of_lane] = weights.zeros + (ZEROS ? group : 0);
  }
  return lines;
}

// Goes on by some units.
GRETA_DEVICE void advance(Lines& lines, u32 units) {
  GRETA_UNROLL
  for (u32 i = 0; i < TN * lane_lines; ++i) {
    const u32 t = i / lane_lines, of_lane = i % lane_lines, groups = units * (unit_weights / GROUP);
    lines.integers[t][of_lane] += place_in_row(bytes_of_weights(units * unit_weights));
    lines.scales[t][of_lane] += groups;
    lines.zeros[t][of_lane] += ZEROS ? groups : 0;
  }
}

// The weights of a unit that a lane has of each tile's lines.
struct ShortUnit {
  Integers integers[TN][lane_lines];
  Scale scale[TN][lane_lines][spans];
  u32 zero[TN][lane_lines][spans];
};

// The unit `later` ones after the one where lines begin.
GRETA_DEVICE ShortUnit load_unit(const Lines& lines, u32 later) {
  ShortUnit unit;
  GRETA_UNROLL
  for (u32 i = 0; i < TN * lane_lines * spans; ++i) {
    const u32 t = i / (lane_lines * spans), of_lane = i / spans % lane_lines, s = i % spans;
    const u64 bytes = bytes_of_weights(later * unit_weights + s * span_weights);
    const Piece piece = load_piece(lines.integers[t][of_lane] + place_in_row(bytes));
    GRETA_UNROLL
    for (u32 w = 0; w < piece_words; ++w) {
      unit.integers[t][of_lane].word[s * piece_words + w] = piece.word[w];
    }
    const u32 group = later * (unit_weights / GROUP) + s * sets;
    unit.scale[t][of_lane][s] = load_now(lines.scales[t][of_lane] + group);
    unit.zero[t][of_lane][s] = ZEROS ? load_byte_now(lines.zeros[t][of_lane] + group) : implied_zero;
  }
  return unit;
}

// A lane's elements of a unit, whose rows begin at `unit`, or of `zero_row` in columns of another set.
GRETA_DEVICE Rows read_sets(const u8* unit, const u8* zero_row, u32 m) {
  Rows rows;
  GRETA_UNROLL
  for (u32 l = 0; l < row_lines; ++l) {
    // Columns past the last row repeat it.
    const u32 row = smaller(l * set_rows + line_of_lane() % set_rows, m - 1);
    const bool own = sets == 1 || line_of_lane() / set_rows == set_of_lane();
    const u8* const of_lane = (own ? unit + row * row_bytes : zero_row) + part_of_lane() * 16;
    GRETA_UNROLL
    for (u32 i = 0; i < 4; ++i) {
      const auto four = load_words<16>(of_lane + exchanged(i, group_bytes, row % 2 * group_bytes));
      rows.eight[l][i] = {{four.word[0], four.word[1], four.word[2], four.word[3]}};
    }
  }
  return rows;
}

#if FORMAT == 1 && IN_BF16
// 2^23 + byte i of a word.
GRETA_DEVICE float above_power(u32 word, u32 i) {
#if defined(GRETA_NVIDIA)
  return __uint_as_float(__byte_perm(word, 0x4b000000U, 0x7540U + i));
#else
  return float_from_bits(0x4b000000U | (word >> 8 * i & 255U));
#endif
}
#endif

// Weights 8 e to 8 e + 7 of a lane, less `zero`.
GRETA_DEVICE Eight less_zero(const Integers& integers, u32 e, u32 zero) {
#if FORMAT == 1 && IN_BF16
  // One difference of two integers, which is exact; eight_weights() has two.
  const u32 flip = ZEROS ? 0U : 0x80808080U;  // from two's complement
  const float both = 8388608.0f + float(zero);
  Eight eight;
  GRETA_UNROLL
  for (u32 i = 0; i < 4; ++i) {
    const u32 word = integers.word[2 * e + i / 2] ^ flip;
    eight.word[i] = upper_halves(above_power(word, i % 2 * 2) - both, above_power(word, i % 2 * 2 + 1) - both);
  }
  return eight;
#else
  return eight_weights(integers, e, zero);
#endif
}

// Adds the products of a unit, each group's scaled, if the unit `counts`.
GRETA_DEVICE void add_groups(const ShortUnit& unit, const Rows& rows, bool counts, Sums (&total)[RT][TN]) {
  GRETA_UNROLL
  for (u32 i = 0; i < spans * TN; ++i) {
    const u32 s = i / TN, t = i % TN;
    Eight weights[lane_lines][piece_eights], of_rows[row_lines][piece_eights];
    GRETA_UNROLL
    for (u32 e = 0; e < piece_eights; ++e) {
      const u32 at = s * piece_eights + e;
      GRETA_UNROLL
      for (u32 l = 0; l < lane_lines; ++l) {
        weights[l][e] = less_zero(unit.integers[t][l], at, unit.zero[t][l][s]);
      }
      GRETA_UNROLL
      for (u32 l = 0; l < row_lines; ++l) of_rows[l][e] = rows.eight[l][at];
    }
    Sums part = {};
    add_products(part, weights, of_rows);
    float scale[lane_lines];
    GRETA_UNROLL
    for (u32 l = 0; l < lane_lines; ++l) scale[l] = to_float(unit.scale[t][l][s]);
    if (counts) add_scaled(total[0][t], part, scale);
  }
}

// Sums of rows: of each eight rows, a lane has two neighbouring ones of two lines.
struct RowSums {
  float eight[FEW_ROWS ? 1 : 2][4];
};

// Whole waves.
GRETA_DEVICE RowSums sum_of_sets(const Sums& total) {
  RowSums sums;
  GRETA_UNROLL
  for (u32 i = 0; i < sizeof(RowSums) / 4; ++i) {
    float of_half[halves];
    GRETA_UNROLL
    for (u32 h = 0; h < halves; ++h) {
      float& x = of_half[h];
      x = total.column[sets == 1 ? i / 4 : h][i % 4];
      if (sets > 1) x += shuffle(x, lane_index() ^ 2U);
      if (sets > 2) x += shuffle(x, lane_index() ^ 1U);
    }
    const u32 row = part_of_lane() * 2;
    const bool later = sets > 1 && row >= set_rows;  // the row is among the columns of the second half
    sums.eight[i / 4][i % 4] = later ? of_half[halves - 1] : of_half[0];
  }
  return sums;
}
