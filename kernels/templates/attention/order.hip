// Which queries a workgroup takes: tiles of BQ queries of one head.
#pragma once

#include "attention/operands.hip"

struct Tile {
  u32 sequence, head, first;  // `first` query
};

// Number `index` of the tiles of so many heads, whose queries have `rows` rows each. Those with most
// keys to see go first, and TOGETHER heads that lie side by side are walked together: they share keys,
// in the cache or in a KV head.
GRETA_DEVICE Tile pick_tile(Arguments& args, u32 heads, u32 index, u32 rows = 1) {
  const u32 all = tile_sets(args) * heads, block = TOGETHER * args.tiles;
  const u32 first_head = index / block * TOGETHER, within = index % block;
  const u32 width = smaller(TOGETHER, all - first_head);
  const u32 head = first_head + within % width;
  const u32 number = args.tiles - 1 - within / width;
#if PACKED
  return {0, head, enter_sequence(args, number, BQ, rows)};
#else
  return {head / heads, head % heads, number * BQ};
#endif
}
GRETA_DEVICE Tile pick_tile(Arguments& args, u32 index) {
  return pick_tile(args, args.heads, index);
}

// Keys that some query of the tile sees, from `begin` to `end`, and the end of those that all see.
struct KeyRange {
  u32 begin, end, seen_by_all;
};

GRETA_DEVICE KeyRange tile_keys(const Arguments& args, const Tile& tile) {
  const u32 count = key_count(args, tile.sequence);
  const u32 last = smaller(tile.first + BQ, args.queries) - 1;
  return {hidden_keys(args, count, tile.first), visible_keys(count, args.queries, last),
          visible_keys(count, args.queries, tile.first)};
}
