// What the rows of a tile are. As packing.hip: without PACK, a tile has BQ queries of one head; with
// PACK, row r is head r % GROUP of query r / GROUP, for the GROUP heads that share a KV head.
#pragma once

#include "attention/order.glsl"

#if !PACK && GROUP != 1
#error "only packed heads make kernels of their own"
#endif

uint query_of(uint row) { return row / GROUP; }

// A tile's `head` is one of these, and its `tile_first` one of these rows.
uint tile_heads() { return PACK != 0 ? args.kv_heads : args.heads; }
uint tile_rows() { return query_count() * GROUP; }

uint kv_head() { return PACK != 0 ? head : head / (args.heads / args.kv_heads); }

// Keys that some row of the tile sees: those from tile_begin to tile_end.
uint tile_begin(uint count) { return hidden_keys(count, query_of(tile_first)); }
uint tile_end(uint count) {
  return visible_keys(count, query_of(min(tile_first + BQ, tile_rows()) - 1));
}

uint head_of(uint row) { return head * GROUP + row % GROUP; }

// Where a row's query is, and its results; in elements.
uint64_t query_row(uint row) { return query_offset(sequence, query_of(row), head_of(row)); }
uint64_t result_row(uint row) { return result_offset(sequence, query_of(row), head_of(row)); }
