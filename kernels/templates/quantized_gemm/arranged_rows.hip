// Rows of A in shared memory, arranged as weights are, from where lanes read them as operands.
#pragma once

#include "quantized_gemm/products.hip"

// Bytes to item i of pairs of items, which are exchanged where `odd_bytes` is an item's size, not 0. As
// i is known, these are constants from one of two addresses.
GRETA_DEVICE u32 exchanged(u32 i, u32 bytes, u32 odd_bytes) {
  return i % 2 == 0 ? i * bytes + odd_bytes : i * bytes - odd_bytes;
}

#if !defined(PIECE)  // weights of a part that follow each other
#define PIECE CHUNK_WEIGHTS
#endif

// Rows of A in shared memory: of each unit and row four groups of 16 bytes of each part, in
// the order of weights. Groups of odd rows are exchanged.
constexpr u32 row_bytes = unit_weights * sizeof(In), group_bytes = parts * 16;

// The part that has eight number e of a unit, and its number there.
constexpr u32 piece_eights = PIECE / 8, span_eights = parts * piece_eights;
#if PIECE == CHUNK_WEIGHTS
GRETA_DEVICE u32 part_of_eight(u32 e) { return e / 4; }
GRETA_DEVICE u32 place_of_eight(u32 e) { return e % 4; }
#else
GRETA_DEVICE u32 part_of_eight(u32 e) { return e % span_eights / piece_eights; }
GRETA_DEVICE u32 place_of_eight(u32 e) { return e % 16 / span_eights * piece_eights + e % piece_eights; }
#endif

// Stores eight elements of a row, as 16 lanes do; `unit`: where a lane's part has the unit's row 0.
GRETA_DEVICE void put_elements(u8* unit, u32 row, const Eight& eight) {
  const u32(&w)[4] = eight.word;
  const u32 group = place_of_eight(lane_index()) ^ row % 2;
  store_words<16>(unit + row * row_bytes + group * group_bytes, {{w[0], w[1], w[2], w[3]}});
}

// A lane's elements of the tile r of rows of a unit, whose rows begin at `unit`.
GRETA_DEVICE Rows read_rows(const u8* unit, u32 r, u32 m) {
  Rows rows;
  GRETA_UNROLL
  for (u32 l = 0; l < row_lines; ++l) {
    const u32 row = smaller(r * 16 + l * 8 + line_of_lane(), m - 1);  // lanes past the last row repeat it
    const u8* const of_lane = unit + row * row_bytes + part_of_lane() * 16;
    GRETA_UNROLL
    for (u32 i = 0; i < 4; ++i) {
      const auto four = load_words<16>(of_lane + exchanged(i, group_bytes, row % 2 * group_bytes));
      rows.eight[l][i] = {{four.word[0], four.word[1], four.word[2], four.word[3]}};
    }
  }
  return rows;
}
