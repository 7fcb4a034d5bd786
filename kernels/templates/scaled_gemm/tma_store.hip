// Stores the sums of a tile of tma.hip, which includes this: each wave its own, through shared memory. With SHIFTED,
// rows of C do not all begin at multiples of 16 bytes.
#pragma once

#include "common/shifted_rows.hip"

#if !defined(SHIFTED) || (SHIFTED && STORE)
#error "SHIFTED must be defined, and bulk copies store multiples of 16 bytes"
#endif

// Scales of a tile that do not change along k: they are loaded before the products, and waited for after these.
// With scales of rows a lane has those of every 32nd column of the tile, and gets others from the lanes that
// have them.
struct TotalScales {
  static constexpr u32 shares = (part_columns + wave_size - 1) / wave_size;

  float row[products][2], column[1 + (GATE != 0)][SCALES == 1 ? shares : 1];

  GRETA_DEVICE TotalScales(const Arguments& args, const Tile& tile) {
    const ScalePair scales = scales_of_group(args.scales, tile.group, args.n);
    GRETA_UNROLL
    for (u32 product = 0; product < products; ++product) {
      GRETA_UNROLL
      for (u32 half = 0; half < 2; ++half) {
        const u32 line = smaller(row_of_lane(tile, product) + half * 8, tile.last_row());
        row[product][half] = SCALES == 2 ? 1.0f : scales.of_a(line, 0);
      }
    }
    GRETA_UNROLL
    for (u32 i = 0; i < (SCALES == 1 ? shares : 1); ++i) {
      const u32 line = smaller(tile.col + i * wave_size + lane_index(), args.n - 1);
      GRETA_UNROLL
      for (u32 up = 0; up < 1 + (GATE != 0); ++up) {
        column[up][i] = SCALES == 2 ? 1.0f : scales.of_b(up * args.n + line, 0);
      }
    }
  }

  // Of the lane's column j of the eight from column `first` of the tile on; of gates, or of their ups.
  GRETA_DEVICE float of_column(u32 first, u32 j, u32 up = 0) const {
    if (SCALES != 1) return column[up][0];
    return shuffle(column[up][first / wave_size], first % wave_size + lane_index() % 4 * 2 + j);
  }
};

// Puts `stored_columns` of C, from the tile's column `first` on, to the wave's buffer, where the lane's part of its
// first row begins at `row`. Eight rows further, rows of C are as far from a multiple of 16 bytes.
template <typename Sums>
GRETA_DEVICE void scale_part(const TotalScales& scales, Sums& totals, u32 product, u32 first,
                             Out* row) {
  GRETA_UNROLL
  for (u32 c = 0; c < stored_columns; c += 8) {
    float of_columns[1 + (GATE != 0)][2];  // with gates, also of their ups
    GRETA_UNROLL
    for (u32 j = 0; j < 2; ++j) {
      of_columns[0][j] = scales.of_column(first + c, j);
      if (GATE) of_columns[GATE != 0][j] = scales.of_column(first + c, j, 1);
    }
    GRETA_UNROLL
    for (u32 half = 0; half < 2; ++half) {
      float x[2];
      GRETA_UNROLL
      for (u32 j = 0; j < 2; ++j) {
        const u32 column = (first + c) / 8, of_lane = half * 2 + j;
        x[j] = float(totals.of(product, column)[of_lane]);
        if (SCALES != 2) x[j] *= scales.row[product][half] * of_columns[0][j];
#if GATE
        float up = float(totals.of(product, column + tile_columns / 8)[of_lane]);
        if (SCALES != 2) up *= scales.row[product][half] * of_columns[1][j];
        x[j] = gated_value(x[j], up);
#endif
      }
      Out* const to = row + half * 8 * stored_pitch + c;
#if SHIFTED
      GRETA_UNROLL
      for (u32 j = 0; j < 2; ++j) to[j] = narrow<Out>(x[j]);
#else
      store_pack(to, narrow_pack<Out>(x));
#endif
    }
  }
}

// The element of C at a row of the tile's group and a column.
GRETA_DEVICE Out* place_of(const Arguments& args, const Tile& tile, u32 row, u32 col) {
  return args.c + (u64(tile.group.first) + row) * args.n + col;
}

#if STORE
// Starts copies of the buffer's rows, a lane each.
GRETA_DEVICE void store_rows(const Arguments& args, SharedMemory buffer, const Tile& tile) {
  static_assert(stored_rows <= wave_size, "a row for each lane");
  const u32 lane = lane_index(), first = row_of_lane(tile, lane / 16) - lane / 4;
  const u32 row = first + lane % 16;
  if (lane < stored_rows && row < tile.group.rows && tile.col < args.n) {
    const u32 columns = smaller(tile_columns, args.n - tile.col);
    copy_row_out(place_of(args, tile, row, tile.col), buffer,
                 lane * stored_pitch * u32(sizeof(Out)), columns * u32(sizeof(Out)));
  }
  close_rows_out();
}
#elif SHIFTED
GRETA_DEVICE void store_part(const Arguments& args, const Tile& tile, const Out* buffer, u32 row,
                             u32 col) {
  if (row >= tile.group.rows || col >= args.n) return;
  ShiftedRows<Out, stored_columns, stored_pitch>::store(
      buffer, tile.group.rows - row, smaller(args.n - col, stored_columns),
      [&](u32 further) { return place_of(args, tile, row + further, col); });
}
#else
// Stores the buffer's rows, which begin at `row` and `col` of C: neighbouring lanes store neighbouring elements.
GRETA_DEVICE void store_part(const Arguments& args, const Tile& tile, const Out* buffer, u32 row,
                             u32 col) {
  constexpr u32 of_row = stored_columns / unit, packs = (16 * of_row + wave_size - 1) / wave_size;
  GRETA_UNROLL
  for (u32 i = 0; i < packs; ++i) {
    const u32 at = i * wave_size + lane_index(), to_row = row + at / of_row, place = at % of_row * unit;
    if (at >= 16 * of_row || to_row >= tile.group.rows || col + place >= args.n) continue;
    store_pack(place_of(args, tile, to_row, col + place),
               load_pack<unit>(buffer + at / of_row * stored_pitch + place));
  }
}
#endif

// Where the lane's part of a row of the buffer begins; `row` and `col` of C are the buffer's first.
GRETA_DEVICE Out* row_in(const Arguments& args, const Tile& tile, Out* buffer, u32 row, u32 col) {
  const u32 in_buffer = lane_index() / 4;
#if SHIFTED
  buffer += shift_of(place_of(args, tile, row + in_buffer, col));
#endif
  return buffer + in_buffer * stored_pitch + lane_index() % 4 * 2;
}

// Stores `part_columns` of C from the tile's first one on.
template <typename Sums>
GRETA_DEVICE void store_tile(const Arguments& args, u8* shared, const Tile& tile,
                             const TotalScales& scales, Sums& totals) {
  Out* const buffer = reinterpret_cast<Out*>(shared);
#if STORE
  wait_for_rows_out();  // of the tile before
  wave_barrier();
#endif
  GRETA_UNROLL
  for (u32 product = 0; product < products; ++product) {
#if STORE
    Out* const rows = buffer + product * 16 * stored_pitch;
    scale_part(scales, totals, product, 0, row_in(args, tile, rows, 0, 0));
#else
    const u32 row = row_of_lane(tile, product) - lane_index() / 4;
    GRETA_UNROLL
    for (u32 first = 0; first < part_columns; first += stored_columns) {
      const u32 col = tile.col + first;
      scale_part(scales, totals, product, first, row_in(args, tile, buffer, row, col));
      wave_barrier();
      store_part(args, tile, buffer, row, col);
      wave_barrier();
    }
#endif
  }
#if STORE
  show_to_copies();
  wave_barrier();
  store_rows(args, shared_memory(shared), tile);
#endif
}

// Stores a workgroup's sums of tile number `index`, or with SPLIT what slices share of it, and adds those
// of the other slices first. `shared`: the stages, which nobody reads or copies to any more then.
GRETA_DEVICE void finish_tile(const Arguments& args, const Slices& slices, u32 index, u8* shared,
                              u8* buffer, const Tile& tile, const TotalScales& scales, Totals& totals) {
#if SPLIT == 1
  store_tile(args, buffer, tile, scales, totals);
#elif FOLD == 1
  if (slices.add_up(index, reinterpret_cast<u32*>(shared), totals)) {
    store_tile(args, buffer, tile, scales, totals);
  }
#else
  OwnTotals own;
  slices.exchange(reinterpret_cast<Total*>(shared), totals, own);
  Tile part = tile;
  part.col += block_z() * part_columns;
  store_tile(args, buffer, part, TotalScales(args, part), own);
  cluster_wait();  // others may still read this workgroup's sums
#endif
}
