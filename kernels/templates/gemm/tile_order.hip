// Which tile of C a workgroup computes.
#pragma once

#include "common/dies.hip"
#include "gemm/operands.hip"

struct Position {
  u32 row, col;
};

// Row and column of tile `index` in a grid of tiles. SWIZZLE rows of tiles are walked together, column
// by column, or `along_n` SWIZZLE columns, row by row, so that workgroups that run at the same time
// share their operands in the cache.
template <bool along_n>
GRETA_DEVICE Position tile_at(const Arguments& args, u32 index) {
  const u32 across = along_n ? args.tiles_n : args.tiles_m;
  const u32 group = SWIZZLE * (along_n ? args.tiles_m : args.tiles_n);
  const u32 first = index / group * SWIZZLE, within = index % group;
  const u32 width = smaller(across - first, SWIZZLE);
  const bool whole = width == SWIZZLE;  // divisions by a constant are fast
  const u32 turn = first + (whole ? within % SWIZZLE : within % width);
  const u32 step = whole ? within / SWIZZLE : within / width;
  return {along_n ? step : turn, along_n ? turn : step};
}

// Picks the workgroup's tile of C. With several dies, those of one die share their operands.
template <bool along_n = false, u32 dies = 1>
GRETA_DEVICE Position pick_tile(const Arguments& args) {
  const u32 index = tile_of_die<dies>(block_index<THREADS>(), args.tiles_m * args.tiles_n);
  const Position tile = tile_at<along_n>(args, index);
  return {tile.row * BM, tile.col * BN};
}
