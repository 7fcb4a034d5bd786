// The way of a workgroup through its keys, and where they and its queries are in shared memory.
// Tiles of keys and of values take turns: with ASYNC in BUFFERS that asynchronous copies fill
// ahead, else in one buffer each, and the next tile waits in registers.
#pragma once

#include "attention/key_tiles.hip"

// Queries that stay in registers leave their place to keys.
typedef LinesTile<BQ> QueryTile;
constexpr u32 keys_start = QREG ? 0 : QueryTile::bytes;
constexpr u32 keys_bytes = LineLoader::Tile::bytes;
#if ASYNC
constexpr u32 tiles_bytes = BUFFERS * keys_bytes;
#else
constexpr u32 tiles_bytes = keys_bytes + ValueLoader::Tile::bytes;
#endif
constexpr u32 walk_bytes = QREG && QueryTile::bytes > tiles_bytes ? QueryTile::bytes
                                                                 : keys_start + tiles_bytes;

// The workgroup's walk: tile 2 n holds keys from n BK on, tile 2 n + 1 their values.
struct Walk {
  SharedMemory shared;
  const In *k, *v;
  u32 end;   // of the keys
  u32 tile;  // that is read
#if ASYNC
  GRETA_DEVICE void copy(u32 t) {
    const u32 first = t / 2 * BK;
    if (first < end) {
      const In* const from = (t % 2 == 0 ? k : v) + u64(first) * DIM;
      LineLoader::copy(shared, keys_start + t % BUFFERS * keys_bytes, from, end - first);
    }
    close_copies();
  }

  GRETA_DEVICE void begin() {
    tile = 0;
    GRETA_UNROLL
    for (u32 t = 0; t + 1 < BUFFERS; ++t) copy(t);
  }

  // The tile is complete when this returns, and seen by all. Gives its place.
  GRETA_DEVICE u32 arrive() {
    wait_for_copies<BUFFERS - 2, LineLoader::units>();
    block_barrier();  // the tile before this one was read
    copy(tile + BUFFERS - 1);
    return keys_start + tile++ % BUFFERS * keys_bytes;
  }
  GRETA_DEVICE u32 arrive_keys() { return arrive(); }
  GRETA_DEVICE u32 arrive_values() { return arrive(); }
#else
  LineLoader key_loader;
  ValueLoader value_loader;

  GRETA_DEVICE void begin() {
    tile = 0;
    key_loader.fetch(k, end);
  }

  GRETA_DEVICE u32 arrive_keys() {
    key_loader.put(shared.bytes + keys_start);
    block_barrier();
    const u32 first = tile++ / 2 * BK;
    value_loader.fetch(v + u64(first) * DIM, end - first);
    return keys_start;
  }
  GRETA_DEVICE u32 arrive_values() {
    value_loader.put(shared.bytes + keys_start + keys_bytes);
    block_barrier();
    const u32 next = (tile++ / 2 + 1) * BK;
    if (next < end) key_loader.fetch(k + u64(next) * DIM, end - next);
    return keys_start + keys_bytes;
  }
#endif
};
