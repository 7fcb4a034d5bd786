// Which tile of C a workgroup computes.
#pragma once

#include "gemm/operands.hip"

struct Position {
  u32 row, col;
};

// Picks the tile of C. SWIZZLE rows of tiles are walked together, column by column, so that
// workgroups that run at the same time share their operands in the cache.
GRETA_DEVICE Position pick_tile(const Arguments& args) {
  const u32 group = SWIZZLE * args.tiles_n;
  const u32 first = block_index<THREADS>() / group * SWIZZLE;
  const u32 rows = smaller(args.tiles_m - first, SWIZZLE);
  const u32 within = block_index<THREADS>() % group;
  return {(first + within % rows) * BM, within / rows * BN};
}
