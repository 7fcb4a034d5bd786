// Rows of queries that share a KV head, and what they see. As rows.hip. The tree's address takes the
// place of that of sinks, which these kernels have not.
#pragma once

#if !defined(SHARED) || !defined(TREE) || !defined(SPLIT) || !defined(GROUP) || !defined(BQ) || \
    !defined(BK)
#error "SHARED TREE SPLIT GROUP BQ and BK must be defined"
#endif
#if PACKED || WINDOW || SOFTCAP || SINKS != TREE || (TREE && CAUSAL)
#error "rows have no packed sequences, window, limit of scores or sinks, and a tree is not causal"
#endif
#if SHARED && V_DIM > DIM
#error "values are a part of their keys"
#endif
#if SPLIT < 1
#error "SPLIT is at least 1"
#endif

#define PACK 1
#define TOGETHER 1  // a tile's neighbours have the same keys
#include "attention/packing.glsl"

uint rows_own;    // rows of the tile that exist
uint rows_count;  // valid keys of the sequence
uint slice_begin, slice_end, slices;  // keys of this workgroup, and slices that have some; at least 1

uint own_query(uint row) { return min(query_of(row), query_count() - 1); }

// Whether a row, whose keys end with key `end`, sees one.
bool sees(uint row, uint end, uint key) {
  if (key >= end) return false;
#if TREE
  const uint queries = query_count(), own = own_query(row);
  if (key + queries < rows_count) return true;
  const uint node = key + queries - rows_count;
  if (node == own) return true;
  const uint64_t word =
      (uint64_t(sequence) * queries + own) * ((queries + 31) / 32) + node / 32;
  return (I32(args.sinks + word * 4).v >> node % 32 & 1) != 0;
#else
  return true;
#endif
}

// Finds the workgroup's tile of rows and its slice of their keys; false if it has none.
bool pick_part() {
  if (workgroup() >= tile_sets() * tile_heads() * args.tiles) return false;
  pick_tile(tile_heads(), workgroup(), GROUP);
  find_lines(sequence, kv_head());
  rows_own = min(tile_rows() - tile_first, BQ);
  rows_count = key_count(sequence);
  slice_begin = 0;
  slice_end = tile_end(rows_count);
  slices = 1;
#if SPLIT > 1
  const uint all = slice_end, keys = (all + SPLIT * BK - 1) / (SPLIT * BK) * BK;
  if (keys > 0) slices = (all + keys - 1) / keys;
  if (gl_WorkGroupID.z >= slices) return false;
  slice_begin = gl_WorkGroupID.z * keys;
  slice_end = min(slice_begin + keys, all);
#endif
  return true;
}
