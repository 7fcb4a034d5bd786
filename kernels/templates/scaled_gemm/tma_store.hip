// Multiplies and stores tiles of tma.hip, which includes this: each wave stores its own sums, through shared
// memory.
#pragma once

// The tile's part that a workgroup stores.
GRETA_DEVICE Tile first_part(const Tile& tile) {
  Tile part = tile;
  if (FOLD == 2) part.col += block_z() * part_columns;
  return part;
}

// Scales that do not change along k: those of a lane's rows, and of each 32 columns that the workgroup stores
// the lane's own one.
struct TileScales {
  float row[products][2];
  float column[1 + (GATE != 0)][SCALES == 1 ? (part_columns + wave_size - 1) / wave_size : 1];

  GRETA_DEVICE void load(const Arguments& args, const Tile& tile) {
#if SCALES != 2
    const ScalePair scales = scales_of_group(args.scales, tile.group, args.n);
    GRETA_UNROLL
    for (u32 i = 0; i < 2 * products; ++i) {
      const u32 at = row_of_lane(tile, i / 2) + i % 2 * 8;
      row[i / 2][i % 2] = scales.of_a(smaller(at, tile.last_row()), 0);
    }
    GRETA_UNROLL
    for (u32 i = 0; i < sizeof(column[0]) / sizeof(float); ++i) {
      const u32 at = first_part(tile).col + i * wave_size + lane_index();
      const u32 line = smaller(at, args.n - 1);
      column[0][i] = scales.of_b(line, 0);
      if (GATE) column[GATE != 0][i] = scales.of_b(args.n + line, 0);
    }
#endif
  }

  // Of a column of this lane's sums: neighbour number j of eight columns from `first` on. All lanes.
  GRETA_DEVICE float of_column(u32 ups, u32 first, u32 j) const {
    if (SCALES != 1) return column[ups][0];
    return shuffle(column[ups][first / wave_size], first % wave_size + lane_index() % 4 * 2 + j);
  }
};

// Whether a thread has the registers for these beside its sums: then nothing waits for them.
constexpr u32 scale_registers = sizeof(TileScales) / 4;
constexpr u32 sum_registers = BN / 2 * (products + PROMOTED) + 28;
constexpr bool loads_scales_ahead =
    SCALES != 2 && sum_registers + scale_registers <= (GROUPS == 1 ? 200 : many_registers);

// Puts `stored_columns` of C, from the tile's column `first` on, to the wave's buffer.
template <typename Sums>
GRETA_DEVICE void scale_part(const TileScales& scales, Sums& totals, u32 product, u32 first,
                             Out* buffer) {
  const u32 lane = lane_index();
  GRETA_UNROLL
  for (u32 c = 0; c < stored_columns; c += 8) {
    float of_columns[1 + (GATE != 0)][2];  // with gates, also of their ups
    GRETA_UNROLL
    for (u32 j = 0; j < 2; ++j) {
      of_columns[0][j] = scales.of_column(0, first + c, j);
      if (GATE) of_columns[GATE != 0][j] = scales.of_column(1, first + c, j);
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
      Out* const to = buffer + (lane / 4 + half * 8) * stored_pitch + c + lane % 4 * 2;
      store_pack(to, narrow_pack<Out>(x));
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
#else
// Stores the buffer's rows, which begin at `row` and `col` of C: lanes have neighbouring packs, or where n
// is odd for these neighbouring elements. The latter's code is short: a tile runs through it once.
GRETA_DEVICE void store_part(const Arguments& args, const Tile& tile, const Out* buffer, u32 row,
                             u32 col) {
  constexpr u32 of_row = stored_columns / unit, packs = 16 * of_row, elements = 16 * stored_columns;
  Out* const to = place_of(args, tile, row, col);
  const u32 rows = row < tile.group.rows ? tile.group.rows - row : 0;  // of C, from here on
  const u32 columns = col < args.n ? args.n - col : 0;
  if (args.n % unit == 0) {
    GRETA_UNROLL
    for (u32 first = 0; first < packs; first += wave_size) {
      const u32 at = first + lane_index(), in_row = at / of_row, place = at % of_row * unit;
      if (at >= packs || in_row >= rows || place >= columns) continue;
      store_pack(to + u64(in_row) * args.n + place,
                 load_pack<unit>(buffer + in_row * stored_pitch + place));
    }
    return;
  }
  constexpr u32 at_once = 4;  // so that lanes do not wait for each
  GRETA_NO_UNROLL
  for (u32 first = 0; first < elements; first += at_once * wave_size) {
    GRETA_UNROLL
    for (u32 i = 0; i < at_once; ++i) {
      const u32 at = first + i * wave_size + lane_index();
      const u32 in_row = at / stored_columns, place = at % stored_columns;
      if (at >= elements || in_row >= rows || place >= columns) continue;
      to[u64(in_row) * args.n + place] = buffer[in_row * stored_pitch + place];
    }
  }
}
#endif

// Stores `part_columns` of C from the tile's first one on.
template <typename Sums>
GRETA_DEVICE void store_tile(const Arguments& args, u8* shared, const Tile& tile,
                             const TileScales& scales, Sums& totals) {
  Out* const buffer = reinterpret_cast<Out*>(shared);
#if STORE
  wait_for_rows_out();  // of the tile before
  wave_barrier();
#endif
  GRETA_UNROLL
  for (u32 product = 0; product < products; ++product) {
#if STORE
    scale_part(scales, totals, product, 0, buffer + product * 16 * stored_pitch);
#else
    const u32 row = row_of_lane(tile, product);
    GRETA_UNROLL
    for (u32 first = 0; first < part_columns; first += stored_columns) {
      scale_part(scales, totals, product, first, buffer);
      wave_barrier();
      store_part(args, tile, buffer, row - lane_index() / 4, tile.col + first);
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
                              u8* buffer, const Tile& tile, TileScales scales, Totals& totals) {
  if (!loads_scales_ahead) scales.load(args, tile);
#if SPLIT == 1
  store_tile(args, buffer, tile, scales, totals);
#elif FOLD == 1
  if (slices.add_up(index, reinterpret_cast<u32*>(shared), totals)) {
    store_tile(args, buffer, tile, scales, totals);
  }
#else
  OwnTotals own;
  slices.exchange(reinterpret_cast<Total*>(shared), totals, own);
  store_tile(args, buffer, first_part(tile), scales, own);
  cluster_wait();  // others may still read this workgroup's sums
#endif
}

// Numbers of clusters' tiles: from `first` on every `apart` one.
struct Walk {
  u32 first, end, apart;
};

GRETA_DEVICE StepScales first_scales(const Arguments& args, const Tile& tile, Steps steps) {
  return scales_of(scales_of_group(args.scales, tile.group, args.n), tile, args.n, steps.first);
}

// A warpgroup multiplies and stores its part of a workgroup's tiles. The scales of the next tile's first step are
// loaded before this one is stored, unless tiles may be empty.
GRETA_DEVICE void multiply_tiles(const Arguments& args, const Slices& slices, u8* shared, Walk walk,
                                 Steps steps, u32 rank, Stages& stages) {
  u8* const buffer = shared + stored_start + wave_index() * stored_bytes;
  StepScales scales = {};
  if (!GROUPED) scales = first_scales(args, tile_of(args, walk.first, rank), steps);
  for (u32 index = walk.first; index < walk.end; index += walk.apart) {
    const Tile tile = tile_of(args, index, rank);
    if (!tile.has_rows()) continue;
    TileScales of_tile = {};
    if (loads_scales_ahead) of_tile.load(args, tile);
    Totals totals = {};
    wait_to_begin();
    if (GROUPED) scales = first_scales(args, tile, steps);
    consume(args, shared_memory(shared), tile, steps, rank, stages, scales, totals);
    const u32 after = index + walk.apart;
    if (RESIDENT && !GROUPED && after < walk.end) {
      scales = first_scales(args, tile_of(args, after, rank), steps);
    }
    finish_tile(args, slices, index * CLUSTER + rank, shared, buffer, tile, of_tile, totals);
  }
}
