// Which tile of C a workgroup computes.
#pragma once

#include "common/dies.hip"
#include "gemm/operands.hip"

struct Position {
  u32 row, col;
};

// Picks the tile of C. SWIZZLE rows of tiles are walked together, column by column, or `along_n`
// SWIZZLE columns, row by row, so that workgroups that run at the same time share their operands in
// the cache: with several dies, those of one die.
template <bool along_n = false, u32 dies = 1>
GRETA_DEVICE Position pick_tile(const Arguments& args) {
  const u32 across = along_n ? args.tiles_n : args.tiles_m;
  const u32 group = SWIZZLE * (along_n ? args.tiles_m : args.tiles_n);
  const u32 index = tile_of_die<dies>(block_index<THREADS>(), args.tiles_m * args.tiles_n);
  const u32 first = index / group * SWIZZLE, within = index % group;
  const u32 width = smaller(across - first, SWIZZLE);
  const u32 turn = first + within % width, step = within / width;
  return {(along_n ? step : turn) * BM, (along_n ? turn : step) * BN};
}
