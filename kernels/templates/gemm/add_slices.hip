// The sums of a tile, BM x BN, by THREADS of the last one of its slices to arrive.
#pragma once

#include "gemm/slices.hip"
#include "gemm/tile_order.hip"

// Adds the slices' sums of the whole tile. A thread has several loads in flight.
GRETA_DEVICE void add_slices(const Arguments& args, Position tile) {
  constexpr u32 all = BM * BN / 4, fours = (all + THREADS - 1) / THREADS;  // of a thread
  constexpr u32 together = SPLIT >= 16 ? 1 : fours < 16 / SPLIT ? fours : 16 / SPLIT;
  constexpr bool even = all % THREADS == 0 && fours % together == 0;
  GRETA_NO_UNROLL
  for (u32 e = 0; e < fours; e += together) {
    float part[together][SPLIT][4] = {};
    GRETA_UNROLL
    for (u32 i = 0; i < together; ++i) {
      const u32 at = (e + i) * THREADS + thread_index();
      const u32 row = tile.row + at / (BN / 4), col = tile.col + at % (BN / 4) * 4;
      GRETA_UNROLL
      for (u32 s = 0; s < SPLIT; ++s) {
        if ((even || at < all) && row < args.m) get_partial4(args, s, row, col, part[i][s]);
      }
    }
    GRETA_UNROLL
    for (u32 i = 0; i < together; ++i) {
      const u32 at = (e + i) * THREADS + thread_index();
      const u32 row = tile.row + at / (BN / 4), col = tile.col + at % (BN / 4) * 4;
      GRETA_UNROLL
      for (u32 s = 1; s < SPLIT; ++s) {
        GRETA_UNROLL
        for (u32 j = 0; j < 4; ++j) part[i][0][j] += part[i][s][j];
      }
      if ((even || at < all) && row < args.m) put4(args, row, col, part[i][0]);
    }
  }
}
