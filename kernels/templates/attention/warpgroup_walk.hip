// The way of warpgroups through their keys (warpgroups.hip), and where these and the queries are in
// shared memory. Asynchronous copies bring them, which a PRODUCER starts, or all warpgroups together.
#pragma once

#include "attention/packing.hip"
#include "attention/panel_copy.hip"
#include "common/partial_barrier.hip"

constexpr u32 padded = (DIM + 15) / 16 * 16, padded_values = (V_DIM + 15) / 16 * 16;  // dimensions
typedef PanelTile<BQ, padded / 8> QueryTile;
typedef PanelTile<BK, padded / 8> KeyTile;
typedef PanelTile<BK, padded_values / 8> ValueTile;

// Where things are in shared memory. Panels of 128 bytes begin at multiples of 1024.
constexpr u32 keys_start = QueryTile::bytes;
constexpr u32 values_start = (keys_start + STAGES * KeyTile::bytes + 1023) / 1024 * 1024;

// The queries of a tile's rows: without PACK, those of a head's tokens, equally far apart.
struct QueryLines {
  const Arguments& args;
  const Tile& tile;

  GRETA_DEVICE const In* line(u32 number) const {
    return query_row(args, tile, tile.first + number);
  }
  GRETA_DEVICE const In* later(const In* from, u32 number, u32 more, u32 at, bool) const {
    return PACK ? line(number + more) + at : from + more * query_offset(args, 0, 1, 0);
  }
};

// The workgroup's walk. Step s brings the keys of tile s and the values of tile s - 1.
struct Walk {
  SharedMemory shared;
  KeyLines k;  // from the first key on that some query sees, number `first`
  ValueLines v;
  u32 first, end;  // `end`: of the keys, counted from that one
  u32 group;       // this warpgroup, whose number is found once: that takes a shuffle

  static constexpr u32 ahead = STAGES - 1;  // steps whose copies are under way

  GRETA_DEVICE void copy(u32 step) const {
    const u32 key = step * BK;
    if (key < end) {
      copy_lines<KeyTile, BK, DIM>(shared, keys_start + step % STAGES * KeyTile::bytes,
                                   CachedLines<DIM>{k.from(key)}, end - key);
    }
    if (step > 0 && key < end + BK) {
      copy_lines<ValueTile, BK, V_DIM>(shared, values_start + (step - 1) % STAGES * ValueTile::bytes,
                                       CachedLines<V_DIM>{v.from(key - BK)}, end + BK - key);
    }
    close_copies();
  }
  GRETA_DEVICE u32 steps() const { return (end + BK - 1) / BK + 1; }

#if PRODUCER
  // Barriers: of a stage that a warpgroup finds full, of one that all have emptied, of turns, and
  // of the end.
  static GRETA_DEVICE u32 full(u32 step, u32 group) {
    return 1 + step % STAGES * GROUPS + group;
  }
  static GRETA_DEVICE u32 empty(u32 step) {
    return 1 + STAGES * GROUPS + step % STAGES;
  }
  static GRETA_DEVICE u32 turn(u32 group) {
    return 1 + STAGES * (GROUPS + 1) + group;
  }
  static constexpr u32 end_of_walks = 15;
  static_assert(STAGES * (GROUPS + 1) + (TURNS ? GROUPS : 0) < end_of_walks,
                "there are 15 barriers");
  static constexpr u32 pair = 256, all = (GROUPS + 1) * 128;

  // Of the producer: brings all steps.
  GRETA_DEVICE void produce() const {
    GRETA_NO_UNROLL
    for (u32 step = 0; step < steps() + ahead; ++step) {
      if (step >= ahead) {
        wait_for_copies<int(ahead) - 1, 0>();
        show_to_products();
        GRETA_UNROLL
        for (u32 group = 0; group < GROUPS; ++group) {
          partial_arrive<pair>(full(step - ahead, group));
        }
      }
      if (step >= STAGES && step < steps()) partial_sync<all>(empty(step));
      copy(step);
    }
  }

  // Of the others. What the step brings is in shared memory when arrive() returns; leave() says
  // that this warpgroup has finished the step's products.
  GRETA_DEVICE void begin() const {
    if (TURNS && group == 1) partial_arrive<pair>(turn(0));
  }
  GRETA_DEVICE void arrive(u32 step) const { partial_sync<pair>(full(step, group)); }
  GRETA_DEVICE void leave(u32 step) const {
    if (step + STAGES < steps()) partial_arrive<all>(empty(step));
  }
  GRETA_DEVICE void take_turn() const {
    if (TURNS) partial_sync<pair>(turn(group));
  }
  GRETA_DEVICE void pass_turn() const {
    if (TURNS) partial_arrive<pair>(turn(1 - group));
  }
  // Returns when all but the producer are here.
  static GRETA_DEVICE void meet() {
    partial_sync<GROUPS * 128>(end_of_walks);
  }
#else
  GRETA_DEVICE void begin() const {
    GRETA_UNROLL
    for (u32 step = 0; step < ahead; ++step) copy(step);
  }

  // What the step brings is in shared memory when this returns, and every warpgroup has finished
  // the products of the step before: their buffers are filled again.
  GRETA_DEVICE void arrive(u32 step) const {
    wait_for_copies<int(ahead) - 1, 0>();
    show_to_products();
    block_barrier();
    copy(step + ahead);
  }
  GRETA_DEVICE void leave(u32) const {}
  GRETA_DEVICE void take_turn() const {}
  GRETA_DEVICE void pass_turn() const {}
  static GRETA_DEVICE void meet() {
    block_barrier();
  }
#endif
};
