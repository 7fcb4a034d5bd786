// What the rows of a tile are. Without PACK, a tile has BQ queries of one head. With PACK, it has
// BQ rows of the GROUP heads that share a KV head: row r is head r % GROUP of query r / GROUP, so
// that a tile is full where there are few queries, and keys are read once for all heads.
#pragma once

#include "attention/order.hip"
#include "common/dies.hip"

constexpr u32 packed_heads = GROUP;
static_assert(PACK || GROUP == 1, "only packed heads make kernels of their own");

GRETA_DEVICE u32 query_of(u32 row) { return row / packed_heads; }

// A tile's head is one of these, and its `first` one of these rows.
GRETA_DEVICE u32 tile_heads(const Arguments& args) { return PACK ? args.kv_heads : args.heads; }
GRETA_DEVICE u32 tile_rows(const Arguments& args) { return args.queries * packed_heads; }

GRETA_DEVICE Tile pick_packed_tile(Arguments& args, u32 index) {
  return pick_tile(args, tile_heads(args), index, packed_heads);
}

GRETA_DEVICE u32 kv_head_of(const Arguments& args, const Tile& tile) {
  return PACK ? tile.head : tile.head / (args.heads / args.kv_heads);
}

// Keys that some row of the tile sees: those from tile_begin to tile_end.
GRETA_DEVICE u32 tile_begin(const Arguments& args, const Tile& tile, u32 count) {
  return hidden_keys(args, count, query_of(tile.first));
}
GRETA_DEVICE u32 tile_end(const Arguments& args, const Tile& tile, u32 count) {
  const u32 last = smaller(tile.first + BQ, tile_rows(args)) - 1;
  return visible_keys(count, args.queries, query_of(last));
}

GRETA_DEVICE u32 head_of(const Tile& tile, u32 row) {
  return tile.head * packed_heads + row % packed_heads;
}

// Where a row's query is.
GRETA_DEVICE const In* query_row(const Arguments& args, const Tile& tile, u32 row) {
  return args.q + query_offset(args, tile.sequence, query_of(row), head_of(tile, row));
}

// And its outputs.
GRETA_DEVICE u64 output_row(const Arguments& args, const Tile& tile, u32 row) {
  return output_offset(args, tile.sequence, query_of(row), head_of(tile, row));
}
