// The 64 rows by SPAN columns that a warpgroup computes of a tile, in f32 by three products of TF32
// (common/tf32.hip). The rows are those of the operand R, which goes
// through registers: its fragments are split there. The columns are those of the operand S, which
// products read from shared memory: its high parts lie where the values were copied to, and its low
// parts in a tile of their own. R is A and S is B; or with SWAPPED, where B does not lie along k, R is
// B and S is A.
//
// Products add to their sums with truncation. So a K step's products, or those of PROMOTE of them, are
// sums of their own, PIECE columns at a time, which the threads add to the whole ones with rounding.
#pragma once

#include "common/tf32.hip"
#include "common/warpgroup_matrix.hip"
#include "gemm/operands.hip"
#include "gemm/tile_order.hip"

#if !defined(SWAPPED) || !defined(ROWS) || !defined(SPAN) || !defined(PIECES)
#error "SWAPPED, ROWS and SPAN (of R and of S in the tile) and PIECES must be defined"
#endif
#if !A_ALONG_K
#error "A must lie along k"
#endif
#if BK != 32 || ROWS % 64 != 0 || SPAN % 32 != 0 || SPAN % PIECE != 0
#error "BK is 32, a warpgroup has 64 rows, PIECE divides the columns, which are a multiple of 32"
#endif
#if AHEAD < 0 || AHEAD > 1 || PROMOTE < 1 || (PROMOTE > 1 && (PIECES > 1 || AHEAD))
#error "AHEAD is 0 or 1, PROMOTE is at least 1; sums of several steps are one piece, without AHEAD"
#endif

// Tiles have lines of 32 elements in panels of 128 bytes.
typedef PanelTile<SPAN, 8> TileS;
typedef PanelTile<SWAPPED ? BK : ROWS, SWAPPED ? ROWS / 4 : 8> TileR;

typedef WarpgroupSums<SPAN> Sums;
typedef WarpgroupSums<PIECE> PieceSums;

// A wave has 16 rows of R, and hands its sums out for as many columns of S as fit.
constexpr u32 handed_out = SPAN % 64 == 0 ? 64 : 32;
constexpr u32 pieces = SWAPPED ? SPAN / handed_out : 1;
constexpr u32 piece_rows = SWAPPED ? handed_out : 16, piece_width = SWAPPED ? 16 : SPAN;

// The first row of R that the wave has.
GRETA_DEVICE u32 first_row_of_wave() { return wave_index() * 16; }

// Where piece i of the wave's part starts in the tile.
GRETA_DEVICE Position piece_position(u32 i) {
  if (SWAPPED) return {i * handed_out, first_row_of_wave()};
  return {first_row_of_wave(), 0};
}

// `width` columns of piece i, from column `first` on, as rows `pitch` floats apart.
template <u32 width>
GRETA_DEVICE void store_piece(const Sums& sums, u32 i, u32 first, float* to, u32 pitch) {
#if SWAPPED
  // A lane's rows of R are neighbours: see fragment().
  const u32 lane = lane_index();
  GRETA_UNROLL
  for (u32 c = 0; c < handed_out; c += 8) {
    const float(&eight)[4] = sums.eight[(i * handed_out + c) / 8];
    GRETA_UNROLL
    for (u32 j = 0; j < 2; ++j) {
      float* const at = to + (c + lane % 4 * 2 + j) * pitch + lane / 4 * 2;
      store_words<8>(at, {{bits_of(eight[j]), bits_of(eight[2 + j])}});
    }
  }
#else
  store_sums<width>(sums, first, to, pitch);
#endif
}
GRETA_DEVICE constexpr u32 sums_pitch(u32 width) { return width + 8; }

// The wave's 16 rows of R and eight k from k on, of the tile at byte `start`. Word i: rows i % 2 and k
// of i / 2, by the layouts of the instruction. Lines along k have rows 8 (i % 2) + lane / 4; of lines
// across k, a lane reads two neighbours, which the instruction takes for rows that are 8 apart.
GRETA_DEVICE Chunk fragment(SharedMemory shared, u32 start, u32 k) {
  const u32 lane = lane_index(), row = first_row_of_wave();
#if SWAPPED
  Chunk words;
  const u32 at = row + lane / 4 * 2;
  GRETA_UNROLL
  for (u32 half = 0; half < 2; ++half) {
    const u32 line = k + half * 4 + lane % 4;
    const u32 place = at / 32 * TileR::panel_bytes + line * TileR::line_bytes +
                      TileR::chunk_at(line, at % 32 / 4) * 16 + at % 4 * 4;
    const Words<8> pair = load_words<8>(shared.bytes + start + place);
    words.word[half * 2] = pair.word[0];
    words.word[half * 2 + 1] = pair.word[1];
  }
  return words;
#else
  const u32 line = row + lane / 8 % 2 * 8 + lane % 8, chunk = k / 4 + lane / 16;
  const u32 place = line * TileR::line_bytes + TileR::chunk_at(line, chunk) * 16;
  return MatrixCore<float, 16>::load_chunks<true>(shared, start + place);
#endif
}

// R's values of a K step, as they were copied, and in parts.
struct Values {
  Chunk of[BK / 8];
};
struct Parts {
  SplitChunk of[BK / 8];
};

GRETA_DEVICE void load_values(SharedMemory shared, u32 start, Values& values) {
  GRETA_UNROLL
  for (u32 i = 0; i < BK / 8; ++i) values.of[i] = fragment(shared, start, i * 8);
}

GRETA_DEVICE void split_values(const Values& values, Parts& parts) {
  split_chunks(values.of, parts.of);
}

// Starts the products of a K step for a piece's columns. `high`, `low`: where S's parts lie. The small
// products are added first: the sums are small as well then, and lose less.
template <bool add>
GRETA_DEVICE void start_piece(SharedMemory shared, u32 high, u32 low, u32 piece, const Parts& parts,
                              PieceSums& sums) {
  const OperandPlace highs = operand_place<TileS, true>(shared, high + piece * PIECE * TileS::line_bytes);
  const OperandPlace lows = operand_place<TileS, true>(shared, low + piece * PIECE * TileS::line_bytes);
  products_begin();
  GRETA_UNROLL
  for (u32 i = 0; i < BK / 8; ++i) {
    if (add || i > 0) {
      multiply_async<true>(sums, parts.of[i].low.word, further(highs, i * 32));
    } else {
      multiply_async<false>(sums, parts.of[i].low.word, further(highs, i * 32));
    }
    multiply_async<true>(sums, parts.of[i].high.word, further(lows, i * 32));
  }
  GRETA_UNROLL
  for (u32 i = 0; i < BK / 8; ++i) {
    multiply_async<true>(sums, parts.of[i].high.word, further(highs, i * 32));
  }
  close_products();
}

// Adds a piece's sums, of which all products are done.
GRETA_DEVICE void promote(Sums& sums, u32 piece, PieceSums& of_piece) {
  claim_sums(of_piece);
  GRETA_UNROLL
  for (u32 c = 0; c < PIECE / 8; ++c) {
    GRETA_UNROLL
    for (u32 i = 0; i < 4; ++i) sums.eight[piece * (PIECE / 8) + c][i] += of_piece.eight[c][i];
  }
}

// Stores the parts of four values of S at `values`, which stay their own high part, cut off, or are
// replaced by a rounded one. An infinite value becomes a finite high part and an infinite low one.
GRETA_DEVICE void store_parts(const Words<16>& given, void* values, void* lows) {
#if ROUNDED
  const SplitChunk parts = split_chunk(given);
  store_words<16>(values, parts.high);
#else
  SplitChunk parts;
  bool plain = true;
  GRETA_UNROLL
  for (u32 i = 0; i < 4; ++i) {
    const float x = float_from_bits(given.word[i]);
    const float high = float_from_bits(given.word[i] & bits_of_tf32);
    parts.low.word[i] = bits_of(x - high) + half_of_last;
    plain = plain && splits_plainly(x);
  }
  if (!plain) {
    parts = split_chunk(given);
    store_words<16>(values, parts.high);
  }
#endif
  store_words<16>(lows, parts.low);
}

// The parts of S, which lies at byte `high` as it was copied, by this one of `threads`. It loads
// several chunks before it stores their parts, so that it waits for shared memory once for all.
template <u32 threads>
GRETA_DEVICE void split_tile(SharedMemory shared, u32 high, u32 low, u32 thread) {
  constexpr u32 chunks = TileS::bytes / 16 / threads, ahead = chunks % 4 == 0 ? 4 : 2;
  static_assert(chunks % ahead == 0, "all threads have the same number of chunks");
  GRETA_NO_UNROLL
  for (u32 chunk = 0; chunk < chunks; chunk += ahead) {
    Words<16> given[ahead];
    u8* const values = shared.bytes + high + (thread + chunk * threads) * 16;
    u8* const lows = shared.bytes + low + (thread + chunk * threads) * 16;
    GRETA_UNROLL
    for (u32 i = 0; i < ahead; ++i) given[i] = load_words<16>(values + i * threads * 16);
    GRETA_UNROLL
    for (u32 i = 0; i < ahead; ++i) {
      store_parts(given[i], values + i * threads * 16, lows + i * threads * 16);
    }
  }
}
