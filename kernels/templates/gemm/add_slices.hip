// The sums of a tile, BM x BN, by THREADS of the last one of its slices to arrive.
#pragma once

#include "gemm/slices.hip"
#include "gemm/tile_order.hip"

// Adds the slices' sums of the whole tile. A thread has several loads in flight.
GRETA_DEVICE void add_slices(const Arguments& args, Position tile) {
  constexpr u32 row_units = BN / unit_columns, all = BM * row_units;
  constexpr u32 units = (all + THREADS - 1) / THREADS;  // of a thread
  constexpr u32 in_flight = 64 / unit_columns / SPLIT;  // units
  constexpr u32 together = in_flight <= 1 ? 1 : smaller(units, in_flight);
  constexpr bool even = all % THREADS == 0 && units % together == 0;
  GRETA_NO_UNROLL
  for (u32 e = 0; e < units; e += together) {
    float part[together][SPLIT][unit_columns] = {};
    UnitResidual residual[together];
    GRETA_UNROLL
    for (u32 i = 0; i < together; ++i) {
      const u32 at = (e + i) * THREADS + thread_index();
      const u32 row = tile.row + at / row_units, col = tile.col + at % row_units * unit_columns;
      GRETA_UNROLL
      for (u32 s = 0; s < SPLIT; ++s) {
        if ((even || at < all) && row < args.m) get_partial_unit(args, s, row, col, part[i][s]);
      }
      residual[i] = {};
      if (even || at < all) residual[i].load(args, row, col);
    }
    GRETA_UNROLL
    for (u32 i = 0; i < together; ++i) {
      const u32 at = (e + i) * THREADS + thread_index();
      const u32 row = tile.row + at / row_units, col = tile.col + at % row_units * unit_columns;
      GRETA_UNROLL
      for (u32 s = 1; s < SPLIT; ++s) {
        GRETA_UNROLL
        for (u32 j = 0; j < unit_columns; ++j) part[i][0][j] += part[i][s][j];
      }
      if ((even || at < all) && row < args.m) put_unit(args, row, col, part[i][0], residual[i]);
    }
  }
}
