// Weights on their way through shared memory, by lanes' copies. Each wave has a ring of STAGES of its own, and
// copies pairs of units of its lines of TN x 16 columns there, tile after tile.
//
// Lanes copy whole cache lines of weights. In shared memory, chunks of 16 bytes of odd lines are
// exchanged, so that the lanes that read two lines at once find them in different banks. Of panels, lanes copy units
// of neighbouring rows, which stay neighbours: panel_places.hip.
#pragma once

#if !defined(STAGES) || STAGES < 2
#error "STAGES must be defined and at least 2"
#endif
#include "quantized_gemm/arranged_rows.hip"

#if GROUP != 128
#error "units of 128 weights have one scale"
#endif

#if !GRETA_LANE_COPY || !defined(GRETA_MATRIX_MMA)
#error "needs copies to shared memory by lanes"
#endif

constexpr u32 pair_units = 2;
constexpr u32 line_bytes = FORMAT == 0 ? 128 : 256, line_chunks = line_bytes / 16;
constexpr u32 tile_lines = TN * 16, flip = FORMAT == 0 ? 4 : 1;
// Of a stage: the weights of a pair of units of each line, then pairs of scales.
constexpr u32 weights_bytes = tile_lines * line_bytes, stage_bytes = weights_bytes + tile_lines * 4;
constexpr u32 ring_bytes = STAGES * stage_bytes;

// With gates, lines alternate between gates and ups.
constexpr u32 lines_of_column = GATED ? 2 : 1;

#if PANELS
#include "quantized_gemm/panel_places.hip"
#else
constexpr u32 lines_at_once = wave_size / line_chunks;

// Lines of a lane are an even number apart, so that with gates all are gates, or all ups.
static_assert(lines_at_once % 2 == 0, "lanes copy gates or ups");

// Starts copying a pair of `lines` lines to a stage; zeros for others of the tile.
GRETA_DEVICE void copy_lines(SharedMemory shared, u32 stage, const u8* from, u32 lines, u32 k) {
  const u32 lane = lane_index(), of_lane = lane / line_chunks, chunk = lane % line_chunks;
  const u32 to = stage + of_lane * line_bytes + (chunk ^ of_lane % 2 * flip) * 16;
  GRETA_UNROLL
  for (u32 i = 0; i < tile_lines / lines_at_once; ++i) {
    copy_lane_async<16>(shared, to + i * lines_at_once * line_bytes, from,
                        i * lines_at_once + of_lane < lines);
    from += lines_at_once / lines_of_column * bytes_of_weights(k);
  }
}

// Where a lane reads its lines of a stage.
struct LaneLines {
  u32 odd;
  const u8* first;

  GRETA_DEVICE explicit LaneLines(const u8* stage)
      : odd(line_of_lane() % 2),
        first(stage + line_of_lane() * line_bytes + part_of_lane() * sizeof(Integers)) {}
  // The 16 bytes j of unit u of line i.
  GRETA_DEVICE const u8* at(u32 i, u32 u, u32 j) const {
    constexpr u32 chunk_bytes = sizeof(Integers);
    // int4 exchanges the units of an odd line, int8 the halves of chunks.
    const u32 place = FORMAT == 0 ? exchanged(u, 4 * chunk_bytes, odd * 4 * chunk_bytes)
                                  : u * 4 * chunk_bytes + exchanged(j, 16, odd * 16);
    return first + i * 8 * line_bytes + place;
  }
};
#endif

// A wave's next pair of units, and where a lane copies it from.
struct Cursor {
  u32 tile, pair;
  const u8* integers;
  const Scale* scales;
};

GRETA_DEVICE Cursor first_of_tile(const Weights& weights, u32 tile, u32 n, u32 k) {
  const u32 lane = lane_index(), first = tile * tile_lines, pair = wave_index();
  return {tile, pair,
#if PANELS
          start_of_copies(weights.integers, first, pair, n, k),
#else
          weights.integers + u64(line_of_column(first + lane / line_chunks, n)) * bytes_of_weights(k) +
              pair * line_bytes + lane % line_chunks * 16,
#endif
          weights.scales + u64(line_of_column(first + lane, n)) * (k / GROUP) + pair * pair_units};
}

GRETA_DEVICE void advance(Cursor& cursor, const Weights& weights, u32 pairs, u32 blocks, u32 n,
                          u32 k) {
  cursor.pair += WAVES;
  cursor.integers += place_in_row(WAVES * line_bytes);
  cursor.scales += WAVES * pair_units;
  if (cursor.pair >= pairs) cursor = first_of_tile(weights, cursor.tile + blocks, n, k);
}

// Starts copying a wave's pair to a stage; zeros for lines past the last one.
GRETA_DEVICE void copy_pair(SharedMemory shared, u32 stage, const Cursor& cursor, u32 n, u32 k) {
  const u32 lane = lane_index(), lines = product_columns(n) - cursor.tile * tile_lines;
  copy_lines(shared, stage, cursor.integers, lines, k);
  GRETA_UNROLL
  for (u32 i = 0; i < (tile_lines + wave_size - 1) / wave_size; ++i) {
    const u32 line = i * wave_size + lane;
    if (line >= tile_lines) break;
    copy_lane_async<4>(shared, stage + weights_bytes + line * 4,
                       cursor.scales + u64(i * wave_size / lines_of_column) * (k / GROUP),
                       line < lines);
  }
}

// The unit of a pair in a stage, but for its zero points.
GRETA_DEVICE void read_unit(const u8* stage, u32 u, Unit& unit) {
  constexpr u32 words = sizeof(Integers) / 16;
  const LaneLines lines(stage);
  GRETA_UNROLL
  for (u32 i = 0; i < TN * lane_lines; ++i) {
    GRETA_UNROLL
    for (u32 j = 0; j < words; ++j) {
      const auto four = load_words<16>(lines.at(i, u, j));
      GRETA_UNROLL
      for (u32 w = 0; w < 4; ++w) {
        unit.integers[i / lane_lines][i % lane_lines][0].word[4 * j + w] = four.word[w];
      }
    }
    unit.scale[i / lane_lines][i % lane_lines].bits =
        load_words<2>(stage + weights_bytes + (i * 8 + line_of_lane()) * 4 + u * 2).word[0];
  }
}

// Zero points of the pair of units of a lane's lines, one in each byte.
struct Zeros {
  u32 both[TN][lane_lines];
};

GRETA_DEVICE Zeros load_zeros(const Weights& weights, u32 tile, u32 pair, u32 n, u32 k) {
  Zeros zeros = {};
  GRETA_UNROLL
  for (u32 i = 0; i < TN * lane_lines; ++i) {
    const u32 t = i / lane_lines, of_lane = i % lane_lines;
    const u32 of_tile = tile * tile_lines + t * 16 + of_lane * 8 + line_of_lane();
    const u64 col = line_of_column(smaller(of_tile, product_columns(n) - 1), n);
    const u64 group = col * (k / GROUP) + pair * pair_units;
    if (ZEROS) zeros.both[t][of_lane] = load_words<2>(weights.zeros + group).word[0];
  }
  return zeros;
}

// Where a wave is: at a pair of a tile.
struct Place {
  u32 tile, pair, pairs, blocks, tiles_n;
};

// Zero points of the wave's next pair, or those that it has.
GRETA_DEVICE Zeros later_zeros(const Weights& weights, const Zeros& zero, const Place& at, u32 n, u32 k) {
  const bool same = at.pair + WAVES < at.pairs;
  const u32 tile = same ? at.tile : at.tile + at.blocks;
  if (!ZEROS || tile >= at.tiles_n) return zero;
  return load_zeros(weights, tile, same ? at.pair + WAVES : wave_index(), n, k);
}

// Gives a unit of a pair its zero points.
GRETA_DEVICE void set_zeros(const Zeros& zero, u32 u, Unit& unit) {
  GRETA_UNROLL
  for (u32 i = 0; i < TN * lane_lines; ++i) {
    u32& of_line = unit.zero[i / lane_lines][i % lane_lines];
    of_line = ZEROS ? zero.both[i / lane_lines][i % lane_lines] >> 8 * u & 255U : implied_zero;
  }
}
