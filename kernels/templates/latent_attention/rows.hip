// Rows of queries that share a KV head: row r of a tile is head r % GROUP of query r / GROUP, as with
// PACK in attention, so that each key is read once for all of them. With SHARED, the first V_DIM
// elements of a key are its value: K and V are the same bytes. With TREE, the last keys are those of
// the queries themselves, in their order, and a query sees those of them that its bits name, and its
// own; the keys before them are visible to all.
#pragma once

#if !defined(SHARED) || !defined(TREE) || !defined(SPLIT) || !defined(GROUP) || !defined(BQ) || \
    !defined(BK)
#error "SHARED TREE SPLIT GROUP BQ and BK must be defined"
#endif
#if PACKED || WINDOW || SOFTCAP || SINKS || (TREE && CAUSAL)
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
#define KWAVES 1
#if !defined(FOLD)
#define FOLD 1
#endif
#include "attention/packing.hip"
#include "attention/partial_sums.hip"

#if TREE
#define TREE_PARAMETER const u32 *GRETA_READ tree,
#define TREE_ARGUMENT tree
#else
#define TREE_PARAMETER
#define TREE_ARGUMENT nullptr
#endif

// What a row sees.
struct Sight {
  u32 end;  // it sees no key from here on
#if TREE
  const u32* bits;  // of the query; bit i % 32 of word i / 32 stands for query i's key
  u32 query, before, queries;
#endif

  GRETA_DEVICE Sight() {}
  // `tree` has words for each query of each sequence.
  GRETA_DEVICE Sight(const Arguments& args, const u32* tree, u32 sequence, u32 count, u32 row) {
    const u32 own = smaller(query_of(row), args.queries - 1);  // of a row that exists
    end = visible_keys(count, args.queries, own);
#if TREE
    query = own;
    before = count;
    queries = args.queries;
    bits = tree + (u64(sequence) * args.queries + own) * ((args.queries + 31) / 32);
#endif
  }

  // One expression without branches: the structurizer of LLVM 22 loses writes to elements of vectors
  // in branches that several conditions lead to (docs/decisions/0036-masks-have-no-branches.md).
  GRETA_DEVICE bool sees(u32 key) const {
#if TREE
    const u32 node = key + queries - before;  // beyond `queries` for the keys before theirs
    const bool is_node = node < queries;
    const u32 bit = bits[is_node ? node / 32 : 0] >> node % 32 & 1U;
    return u32(key < end) & (u32(!is_node) | u32(node == query) | bit);
#else
    return key < end;
#endif
  }

  // Whether it sees all keys before this one.
  GRETA_DEVICE bool sees_all_before(u32 key) const {
#if TREE
    return key + queries <= before;
#else
    return key <= end;
#endif
  }
};

// What a workgroup is for: a tile of rows, and a slice of their keys.
struct Part {
  Tile tile;
  u32 reader, readers;  // workgroups that share no row
  u32 own;              // rows that exist
  u32 count;            // valid keys of the sequence
  Slice slice;

  GRETA_DEVICE bool exists() const { return own > 0 && block_z() < slice.used; }
};

GRETA_DEVICE Part pick_part(Arguments& args, u32 reader, u32 slice) {
  Part part = {};
  part.readers = tile_sets(args) * tile_heads(args) * args.tiles;
  part.reader = reader;
  if (part.reader >= part.readers) return part;
  part.tile = pick_packed_tile(args, part.reader);
  part.own = smaller(tile_rows(args) - part.tile.first, BQ);
  part.count = key_count(args, part.tile.sequence);
  part.slice = pick_slice(0, tile_end(args, part.tile, part.count), slice);
  return part;
}

GRETA_DEVICE Part pick_part(Arguments& args) {
  return pick_part(args, block_index<THREADS>(), block_z());
}
