// The way of warpgroups through their keys (warpgroups.hip), and where these and the queries are in
// shared memory. Asynchronous copies bring them, which a PRODUCER starts, or all warpgroups together.
#pragma once

#include "attention/operands.hip"
#include "common/partial_barrier.hip"
#include "common/warpgroup_matrix.hip"

constexpr u32 padded = (DIM + 15) / 16 * 16, padded_values = (V_DIM + 15) / 16 * 16;  // dimensions
typedef PanelTile<BQ, padded / 8> QueryTile;
typedef PanelTile<BK, padded / 8> KeyTile;
typedef PanelTile<BK, padded_values / 8> ValueTile;

// Where things are in shared memory. Panels of 128 bytes begin at multiples of 1024.
constexpr u32 keys_start = QueryTile::bytes;
constexpr u32 values_start = (keys_start + STAGES * KeyTile::bytes + 1023) / 1024 * 1024;

// Queries of a head, whose tokens are `pitch` elements apart.
struct QueryLines {
  const In* first;
  u64 pitch;

  GRETA_DEVICE const In* line(u32 number) const { return first + number * pitch; }
  GRETA_DEVICE const In* later(const In* from, u32, u32 more, u32, bool) const {
    return from + more * pitch;
  }
};

// Keys or values.
template <u32 dim>
struct CachedLines {
  Lines<dim> lines;

  GRETA_DEVICE const In* line(u32 number) const { return lines.line(number); }
  // `more` lines after line `number`, whose element `at` is at `from`.
  GRETA_DEVICE const In* later(const In* from, u32 number, u32 more, u32 at, bool inside) const {
#if PACKED
    return from + more * lines.pitch;
#elif PAGE
    return inside ? lines.line(number + more) + at : from;
#else
    return from + more * dim;
#endif
  }
};

// Starts copying lines of `dim` elements; zeros for those from `count` on, and behind the elements. A
// thread copies the same chunk of each panel, of lines a multiple of eight apart, so that addresses
// differ by constants.
template <typename CopiedTile, u32 lines, u32 dim, typename Source>
GRETA_DEVICE void copy_lines(SharedMemory shared, u32 start, const Source& source, u32 count) {
  constexpr u32 width = CopiedTile::width, step = COPIERS / width;
  constexpr u32 chunks = (dim + 15) / 16 * 2;  // of a line in shared memory
  static_assert(step % 8 == 0, "chunks trade places in the same way in all lines of a thread");
  const u32 number = thread_index() % COPIERS;
  const u32 line = number / width, place = number % width;
  const u32 chunk = CopiedTile::chunk_at(line, place);
  const In* const from = source.line(PAGE && line >= count ? 0 : line) + chunk * 8;
  const u32 to = start + line * CopiedTile::line_bytes + place * 16;
  GRETA_UNROLL
  for (u32 more = 0; more < lines; more += step) {
    if (lines % step != 0 && line + more >= lines) break;
    GRETA_UNROLL
    for (u32 panel = 0; panel < chunks / width; ++panel) {
      const u32 further = panel * width;
      const bool inside = line + more < count && (chunks * 8 == dim || chunk + further < dim / 8);
      const In* const later = source.later(from, line, more, chunk * 8, inside);
      copy_lane_async<16>(
          shared, to + more * CopiedTile::line_bytes + panel * CopiedTile::panel_bytes,
          later + further * 8, inside);
    }
  }
}

// The workgroup's walk. Step s brings the keys of tile s and the values of tile s - 1.
struct Walk {
  SharedMemory shared;
  KeyLines k;  // from the first key on that some query sees, number `first`
  ValueLines v;
  u32 first, end;  // `end`: of the keys, counted from that one

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
  // Barriers: of a stage that a warpgroup finds full, of one that all have emptied, and of turns.
  static GRETA_DEVICE u32 full(u32 step, u32 group) { return 1 + step % STAGES * GROUPS + group; }
  static GRETA_DEVICE u32 empty(u32 step) { return 1 + STAGES * GROUPS + step % STAGES; }
  static GRETA_DEVICE u32 turn(u32 group) { return 1 + STAGES * (GROUPS + 1) + group; }
  static_assert(STAGES * (GROUPS + 1) + (TURNS ? GROUPS : 0) < 16, "there are 15 barriers");
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
    if (TURNS && warpgroup_index() == 1) partial_arrive<pair>(turn(0));
  }
  GRETA_DEVICE void arrive(u32 step) const { partial_sync<pair>(full(step, warpgroup_index())); }
  GRETA_DEVICE void leave(u32 step) const {
    if (step + STAGES < steps()) partial_arrive<all>(empty(step));
  }
  GRETA_DEVICE void take_turn() const {
    if (TURNS) partial_sync<pair>(turn(warpgroup_index()));
  }
  GRETA_DEVICE void pass_turn() const {
    if (TURNS) partial_arrive<pair>(turn(1 - warpgroup_index()));
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
#endif
};
