// The way of a workgroup through its keys, and where they and its queries are in shared memory.
// Tiles of keys and of values take turns: with ASYNC in BUFFERS that asynchronous copies fill
// ahead, else in one buffer each, and the next tile waits in registers. Where the lanes of a wave copy
// one behind the other, as on gfx950, all waves copy as often, and zeros behind the last key.
#pragma once

#include "attention/key_tiles.hip"

// Queries that stay in registers, but don't come straight from memory, leave their place to keys: if they fit, that of the tile whose copy
// starts last, so that they come while the copies before it are under way.
typedef LinesTile<BQ, DIM> QueryTile;
constexpr u32 keys_start = QREG ? 0 : QueryTile::bytes;
#if ASYNC
constexpr u32 keys_bytes = KeyLoader::buffer_bytes, values_bytes = ValueLoader::buffer_bytes;
#else
constexpr u32 keys_bytes = KeyLoader::Tile::bytes, values_bytes = ValueLoader::Tile::bytes;
#endif
constexpr u32 buffer_bytes = keys_bytes > values_bytes ? keys_bytes : values_bytes;  // of either
#if ASYNC
constexpr u32 tiles_bytes = BUFFERS * buffer_bytes;
static_assert(!GRETA_LANE_COPY || padded == DIM || V_DIM == DIM,
              "what lies behind keys stays zero, and not a value");
#else
constexpr u32 tiles_bytes = keys_bytes + values_bytes;
#endif
// What lies behind DIM in tiles of keys, where copies don't write it.
constexpr bool clears_tiles = padded != DIM && !(ASYNC && !GRETA_LANE_COPY);
constexpr bool queries_last = ASYNC && QREG == 1 && QueryTile::bytes <= buffer_bytes;
constexpr u32 queries_start = queries_last ? tiles_bytes - buffer_bytes : 0;
constexpr u32 walk_bytes = QREG == 1 && QueryTile::bytes > tiles_bytes ? QueryTile::bytes
                                                                      : keys_start + tiles_bytes;

// The workgroup's walk through keys and values, BK at a time.
struct Walk {
  SharedMemory shared;
  KeyLines k;
  ValueLines v;
  u32 end;    // of the keys
  u32 first;  // of those that are read
#if ASYNC
  u32 place;  // of the tile that arrives next

  // Tile 2 n holds keys from first + n BK on, tile 2 n + 1 their values.
  GRETA_DEVICE void copy(u32 tile, u32 to) {
    const u32 from = first + tile / 2 * BK;
#if !GRETA_LANE_COPY
    const u32 left = end - smaller(end, from);
    if (tile % 2 == 0) {
      KeyLoader::copy(shared, to, k.from(from), left);
    } else {
      ValueLoader::copy(shared, to, v.from(from), left);
    }
#else
    if (from < end) {
      if (tile % 2 == 0) {
        KeyLoader::copy(shared, to, k.from(from), end - from);
      } else {
        ValueLoader::copy(shared, to, v.from(from), end - from);
      }
    }
#endif
    close_copies();
  }

  GRETA_DEVICE void begin() {
    first = 0;
    place = keys_start;
    GRETA_UNROLL
    for (u32 t = 0; t + 1 < BUFFERS; ++t) copy(t, keys_start + t * buffer_bytes);
  }

  // Copies of a thread of the tiles after this one that are under way when it arrives.
  static GRETA_DEVICE constexpr u32 ahead(u32 tile) {
    constexpr u32 next = (BUFFERS - 1) / 2, others = (BUFFERS - 2) / 2;
    return tile == 0 ? next * ValueLoader::units + others * KeyLoader::units
                     : next * KeyLoader::units + others * ValueLoader::units;
  }

  // The tile is complete when this returns, and seen by all. Gives its place. The next copy goes to
  // that of the tile before it, which was read.
  template <u32 tile>
  GRETA_DEVICE u32 arrive() {
    constexpr u32 last = keys_start + (BUFFERS - 1) * buffer_bytes;
    const u32 here = place;
#if GRETA_LANE_COPY
    wait_for_copies<BUFFERS - 2, KeyLoader::units>();
#else
    wait_for_copies<1, ahead(tile)>();
#endif
    block_barrier();
    copy(tile + BUFFERS - 1, here == keys_start ? last : here - buffer_bytes);
    place = here == last ? keys_start : here + buffer_bytes;
    return here;
  }
  GRETA_DEVICE u32 arrive_keys() { return arrive<0>(); }
  GRETA_DEVICE u32 arrive_values() {
    const u32 here = arrive<1>();
    first += BK;
    return here;
  }
  // Shared memory may be used for something else after the next barrier.
  GRETA_DEVICE void finish() {
    if (!GRETA_LANE_COPY) wait_for_copies<0, 0>();  // zeros from behind the last key
  }
#else
  KeyLoader key_loader;
  ValueLoader value_loader;

  GRETA_DEVICE void begin() {
    first = 0;
    key_loader.fetch(k, end);
  }

  GRETA_DEVICE u32 arrive_keys() {
    key_loader.put(shared.bytes + keys_start);
    block_barrier();
    value_loader.fetch(v.from(first), end - first);
    return keys_start;
  }
  GRETA_DEVICE u32 arrive_values() {
    value_loader.put(shared.bytes + keys_start + keys_bytes);
    block_barrier();
    first += BK;
    if (first < end) key_loader.fetch(k.from(first), end - first);
    return keys_start + keys_bytes;
  }
  GRETA_DEVICE void finish() {}
#endif
};
