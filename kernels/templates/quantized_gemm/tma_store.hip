// How the sums of tma.hip's warpgroups become elements of C; with SPLIT after the slices of a cluster are added.
#pragma once

// Stores rows of the warpgroup's buffer, which begin at `row` and `col` of C, `width` elements at a time,
// of which rows of C have a multiple.
template <u32 width>
GRETA_DEVICE void store_rows(const Arguments& args, const Out* buffer, const Group& group, u32 row,
                             u32 col) {
  constexpr u32 of_row = product_cols / width, threads = 4 * wave_size;
  for (u32 first = 0; first < stored_rows * of_row; first += threads) {
    const u32 at = first + thread_index() % threads, to_row = row + at / of_row, place = at % of_row * width;
    if (at >= stored_rows * of_row || to_row >= group.rows || col + place >= args.n) continue;
    store_pack(args.c + u64(group.first + to_row) * args.n + col + place,
               load_pack<width>(buffer + at / of_row * stored_pitch + place));
  }
}

// Stores a warpgroup's sums: a product's 64 rows are columns of C, or gates and ups of 32.
GRETA_DEVICE void store_tile(const Arguments& args, Out* buffer, Tile tile,
                             const Sums (&totals)[products]) {
  const u32 lane = lane_index();
  GRETA_UNROLL
  for (u32 product = 0; product < products; ++product) {
    const u32 of_wave = wave_index() % 4 * wave_cols;
    const u32 col = tile.col + column_of_lane(product) - lane / 4 - of_wave;
    GRETA_UNROLL
    for (u32 first = 0; first < BM; first += stored_rows) {
      GRETA_UNROLL
      for (u32 i = 0; i < stored_rows / 2; ++i) {
        const u32 at = first + i / 4 * 8, row = i / 4 * 8 + lane % 4 * 2 + i % 2;
        const float(&eight)[4] = totals[product].eight[at / 8];
#if GATED
        if (i % 4 >= 2) continue;  // an up
        const float value = gated_value(eight[i % 4], eight[i % 4 + 2]);
        buffer[row * stored_pitch + of_wave + lane / 4] = narrow<Out>(value);
#else
        const u32 in_col = of_wave + lane / 4 + i % 4 / 2 * 8;
        float sum = eight[i % 4];
#if EPILOGUE != 0
        const u32 of_row = tile.group.row + first + row, of_col = col + in_col;
        if (of_row < tile.group.rows && of_col < args.n) {
          sum += added_to(args.added, of_row, of_col, args.n);
        }
#endif
        buffer[row * stored_pitch + in_col] = narrow<Out>(sum);
#endif
      }
      partial_sync<4 * wave_size>(1 + warpgroup_index());
      if (args.n % unit == 0) {
        store_rows<unit>(args, buffer, tile.group, tile.group.row + first, col);
      } else if (args.n % 2 == 0) {
        store_rows<2>(args, buffer, tile.group, tile.group.row + first, col);
      } else {
        store_rows<1>(args, buffer, tile.group, tile.group.row + first, col);
      }
      partial_sync<4 * wave_size>(1 + warpgroup_index());
    }
  }
}

#if SPLIT > 1
// Puts a warpgroup's sums to the tile in shared memory.
GRETA_DEVICE void put_sums(float* sums, const Sums (&totals)[products]) {
  GRETA_UNROLL
  for (u32 product = 0; product < products; ++product) {
    float* const to = sums + lane_index() % 4 * 2 * tile_pitch + line_of_lane(product);
    GRETA_UNROLL
    for (u32 i = 0; i < BM / 2; ++i) {
      to[(i / 4 * 8 + i % 2) * tile_pitch + i % 4 / 2 * 8] = totals[product].eight[i / 4][i % 4];
    }
  }
}

// Adds up the slices of this block's share of the tile's rows, in the order of K, and stores them.
GRETA_DEVICE void add_slices(const Arguments& args, const float* sums, Tile tile) {
  constexpr u32 share = BM / SPLIT, fours = BN / 4;
  const u32 rank = block_z();
  const float* of_slice[SPLIT];
  GRETA_UNROLL
  for (u32 s = 0; s < SPLIT; ++s) of_slice[s] = place_in_block(s, sums);
  GRETA_UNROLL
  for (u32 at = thread_index(); at < share * fours; at += THREADS) {
    const u32 in_row = rank * share + at / fours, in_col = at % fours * 4;
    const u32 row = tile.group.row + in_row, col = tile.col + in_col;
    if (row >= tile.group.rows || col >= args.n) continue;
    Pack<float, 4> slice[SPLIT];
    GRETA_UNROLL
    for (u32 s = 0; s < SPLIT; ++s) slice[s] = load_pack<4>(of_slice[s] + in_row * tile_pitch + in_col);
    float sum[4] = {};
    GRETA_UNROLL
    for (u32 i = 0; i < 4 * SPLIT; ++i) sum[i % 4] += element(slice[i / 4], i % 4);
#if EPILOGUE != 0
    for (u32 i = 0; i < 4 && col + i < args.n; ++i) sum[i] += added_to(args.added, row, col + i, args.n);
#endif
    Out* const to = args.c + u64(row) * args.n + col;
    if (args.n % 4 == 0) {
      store_pack(to, narrow_pack<Out>(sum));
    } else {
      for (u32 i = 0; i < 4 && col + i < args.n; ++i) to[i] = narrow<Out>(sum[i]);
    }
  }
}
#endif
