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

#if EPILOGUE == 2
// The residual of the parts that a warpgroup stores one after the other. It comes to their sums by the buffer,
// where threads put what they load as they store C: where rows of C are multiples of 16 bytes, two parts ahead.
struct ResidualAhead {
  static constexpr u32 of_row = product_cols / unit, threads = 4 * wave_size;
  static constexpr u32 packs = (stored_rows * of_row + threads - 1) / threads;  // of a thread
  static constexpr u32 of_product = BM / stored_rows, parts = products * of_product;
  static constexpr u32 slots = parts < 2 ? 1 : 2;

  const Arguments& args;
  Tile tile;
  bool whole;
  Pack<Out, unit> ahead[slots][packs];

  GRETA_DEVICE ResidualAhead(const Arguments& all, const Tile& of)
      : args(all), tile(of), whole(all.n % unit == 0) {
    tile.col += warpgroup_index() * products * product_cols;
    GRETA_UNROLL
    for (u32 part = 0; part < slots; ++part) load(part);
  }

  // Puts a part into the buffer, and loads a later one.
  GRETA_DEVICE void put(u32 part, Out* buffer) {
    if (whole) {
      GRETA_UNROLL
      for (u32 i = 0; i < packs; ++i) {
        const u32 at = i * threads + thread_index() % threads;
        if (at >= stored_rows * of_row) continue;
        store_pack(buffer + at / of_row * stored_pitch + at % of_row * unit, ahead[part % slots][i]);
      }
      if (part + slots < parts) load(part + slots);
      return;
    }
    GRETA_NO_UNROLL
    for (u32 at = thread_index() % threads; at < stored_rows * product_cols; at += threads) {
      const u32 row = row_of(part) + at / product_cols, col = col_of(part) + at % product_cols;
      if (row >= tile.group.rows || col >= args.n) continue;
      buffer[at / product_cols * stored_pitch + at % product_cols] = args.added[u64(row) * args.n + col];
    }
  }

 private:
  GRETA_DEVICE u32 row_of(u32 part) const { return tile.group.row + part % of_product * stored_rows; }
  GRETA_DEVICE u32 col_of(u32 part) const { return tile.col + part / of_product * product_cols; }

  GRETA_DEVICE void load(u32 part) {
    if (!whole) return;
    GRETA_UNROLL
    for (u32 i = 0; i < packs; ++i) {
      const u32 at = i * threads + thread_index() % threads;
      const u32 row = row_of(part) + at / of_row, col = col_of(part) + at % of_row * unit;
      ahead[part % slots][i] = {};
      if (at >= stored_rows * of_row || row >= tile.group.rows || col >= args.n) continue;
      ahead[part % slots][i] = load_pack<unit>(args.added + u64(row) * args.n + col);
    }
  }
};
#endif

// Stores a warpgroup's sums: a product's 64 rows are columns of C, or gates and ups of 32.
GRETA_DEVICE void store_tile(const Arguments& args, Out* buffer, Tile tile,
                             const Sums (&totals)[products]) {
  const u32 lane = lane_index();
#if EPILOGUE == 2
  ResidualAhead residual(args, tile);
#endif
  GRETA_UNROLL
  for (u32 product = 0; product < products; ++product) {
    const u32 of_wave = wave_index() % 4 * wave_cols;
    const u32 col = tile.col + column_of_lane(product) - lane / 4 - of_wave;
#if EPILOGUE == 1
    float bias[2];  // of the lane's columns
    GRETA_UNROLL
    for (u32 j = 0; j < 2; ++j) {
      bias[j] = to_float(args.added[smaller(col + of_wave + lane / 4 + j * 8, args.n - 1)]);
    }
#endif
    GRETA_UNROLL
    for (u32 first = 0; first < BM; first += stored_rows) {
#if EPILOGUE == 2
      residual.put((product * BM + first) / stored_rows, buffer);
      partial_sync<4 * wave_size>(1 + warpgroup_index());
#endif
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
        Out& to = buffer[row * stored_pitch + in_col];
#if EPILOGUE == 1
        sum += bias[i % 4 / 2];
#elif EPILOGUE == 2
        sum += to_float(to);
#endif
        to = narrow<Out>(sum);
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

#if SLICES > 1
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

// The sums of a block of the cluster.
GRETA_DEVICE const float* sums_of_block(u32 block, const float* sums) {
#if SPLIT > 1
  return place_in_block(block, sums);
#else
  return sums;
#endif
}

// Adds up the slices of this block's part of the tile's rows, in a fixed order, and stores them.
GRETA_DEVICE void add_slices(const Arguments& args, const float* sums, Tile tile) {
  constexpr u32 share = BM / SPLIT, fours = BN / 4;
  const u32 rank = SPLIT > 1 ? block_z() : 0;
  const float* of_block[SPLIT];
  GRETA_UNROLL
  for (u32 s = 0; s < SPLIT; ++s) of_block[s] = sums_of_block(s, sums);
  GRETA_UNROLL
  for (u32 at = thread_index(); at < share * fours; at += THREADS) {
    const u32 in_row = rank * share + at / fours, in_col = at % fours * 4;
    const u32 row = tile.group.row + in_row, col = tile.col + in_col;
    if (row >= tile.group.rows || col >= args.n) continue;
#if EPILOGUE == 2
    const Out* const added = args.added + u64(row) * args.n + col;
    const bool fours_of_row = args.n % 4 == 0;
    Pack<Out, 4> residual = {};
    if (fours_of_row) residual = load_pack<4>(added);
#endif
    Pack<float, 4> slice[SLICES];
    GRETA_UNROLL
    for (u32 s = 0; s < SLICES; ++s) {
      slice[s] = load_pack<4>(of_block[s / SHARES] + s % SHARES * tile_floats + in_row * tile_pitch + in_col);
    }
    float sum[4] = {};
    GRETA_UNROLL
    for (u32 i = 0; i < 4 * SLICES; ++i) sum[i % 4] += element(slice[i / 4], i % 4);
#if EPILOGUE == 1
    for (u32 i = 0; i < 4 && col + i < args.n; ++i) sum[i] += to_float(args.added[col + i]);
#elif EPILOGUE == 2
    GRETA_UNROLL
    for (u32 i = 0; i < 4; ++i) {
      if (fours_of_row) {
        sum[i] += element(residual, i);
      } else if (col + i < args.n) {
        sum[i] += to_float(added[i]);
      }
    }
#endif
    Out* const to = args.c + u64(row) * args.n + col;
    if (args.n % 4 == 0) {
      store_pack(to, narrow_pack<Out>(sum));
    } else {
      for (u32 i = 0; i < 4 && col + i < args.n; ++i) to[i] = narrow<Out>(sum[i]);
    }
  }
}

// Adds up and stores the sums of all slices. `sums`: where the rings are.
GRETA_DEVICE void store_slices(const Arguments& args, float* sums, Tile tile, const Sums (&totals)[products]) {
  partial_sync<THREADS>(1);  // all are done with the rings
  put_sums(sums + share_of_wave() * tile_floats, totals);
#if SPLIT > 1
  cluster_barrier();
#else
  partial_sync<THREADS>(1);
#endif
  add_slices(args, sums, tile);
#if SPLIT > 1
  cluster_barrier_relaxed();  // others may still read this block's sums
#endif
}
#endif
