// Rows that share keys (rows.hip) by two warpgroups of sm_90 that alternate: of each pair of tiles of BK lines, each
// computes the scores of one and turns them into weights, while the other multiplies. Both add the values of both
// tiles, each to its half of the dimensions of the outputs (group_rows.hip). Weights pass through shared memory,
// where they replace the last dimensions of their tile if no value has these. A third warpgroup starts asynchronous
// copies of the parts of a tile, each when the products with what was there before have ended. Slices are joined by
// rows_join.hip. Source of the order of products: FlashMLA's kernel for sm_90 (DeepSeek, 2025).
#if !defined(BK)
#error "BK must be defined"
#endif
#if BK % 16 != 0 || BK > 64
#error "BK is a multiple of 16, at most 64"
#endif

#define GROUPS 2
#define THREADS 384
#define COPIERS 128
#define JOINERS 256

#include "common/partial_barrier.hip"

// Barriers: where the weights of a warpgroup's tile are ready, where a warpgroup has its scores, and where both meet.
constexpr u32 weights_ready = 1, scores_ready = 3, both_here = 5;
GRETA_DEVICE void joiners_barrier() { partial_sync<JOINERS>(both_here); }

#include "common/tensor_copy.hip"
#include "latent_attention/group_rows.hip"

// Registers of a copying thread, and of the others'. A warpgroup waits until there are enough of those that the
// workgroup got at its launch.
constexpr u32 few_registers = 40, many_registers = 232;
static_assert(few_registers + GROUPS * many_registers <= (GROUPS + 1) * registers_at_launch<THREADS>(),
              "a warpgroup would wait for registers for ever");

// Parts of a tile: the values of each warpgroup, and the dimensions after them, if there are any.
constexpr u32 rest = GROUPS, parts = padded > GROUPS * group_values ? 3 : 2;
template <u32 part>
struct TilePart {
  static constexpr u32 from = part * group_values, to = part == rest ? padded : from + group_values;
};

// Where things are in shared memory.
constexpr bool replace = panel == 64 && padded - GROUPS * group_values >= 64;
constexpr u32 weights_start = keys_start + GROUPS * tile_bytes;
constexpr u32 bases_start = weights_start + (replace ? 0 : GROUPS * panels_bytes(WeightTile::bytes));
constexpr u32 sums_start = bases_start + GROUPS * BQ * 4, barriers_start = sums_start + GROUPS * BQ * 4;
static_assert(staged_bytes <= sums_start, "outputs are ahead of what join_sums() reads");

GRETA_DEVICE constexpr u32 tile_of(u32 group) { return keys_start + group * tile_bytes; }
GRETA_DEVICE constexpr u32 weights_of(u32 group) {
  return replace ? tile_of(group) + KeyTile::part<true>(0, GROUPS * group_values)
                 : weights_start + group * panels_bytes(WeightTile::bytes);
}

// The way through pairs of tiles.
struct Walk {
  const Arguments& args;
  const Part& part;
  u8* memory;
  SharedMemory shared;
  u32 end;  // keys

  // A part of a group's tile is there; it may be replaced.
  GRETA_DEVICE CountedBarrier full(u32 group, u32 of_tile) const {
    return barrier_at(memory + barriers_start, group * 3 + of_tile);
  }
  GRETA_DEVICE CountedBarrier empty(u32 group, u32 of_tile) const {
    return barrier_at(memory + barriers_start, (GROUPS + group) * 3 + of_tile);
  }
  GRETA_DEVICE void open() const {
    constexpr u32 waves = 4;  // of a warpgroup
    for (u32 i = 0; i < GROUPS * 3; ++i) {
      full(0, i).open(COPIERS);
      empty(0, i).open(waves);
    }
    show_barriers();
  }

  // Of the copying warpgroup: brings all tiles, and queries with the first one's parts.
  GRETA_DEVICE void copy() const {
    const KeyLines keys = KeyLines(args, args.k, part.tile.sequence, part.tile.head).from(part.slice.begin);
    GRETA_NO_UNROLL
    for (u32 pair = 0; pair * GROUPS * BK < end; ++pair) {
      copy_tile<0>(keys, pair);
      if ((pair * GROUPS + 1) * BK < end) copy_tile<1>(keys, pair);
    }
    close_copies();
    wait_for_copies<0, 0>();
  }
  template <u32 group>
  GRETA_DEVICE void copy_tile(const KeyLines& keys, u32 pair) const {
    const u32 first = (pair * GROUPS + group) * BK;
    const CachedLines<DIM> lines{keys.from(first)};
    copy_part<group, group>(lines, pair, end - first);
    copy_part<group, 1 - group>(lines, pair, end - first);
    if constexpr (parts > rest) copy_part<group, rest>(lines, pair, end - first);
  }
  template <u32 group, u32 of_tile>
  GRETA_DEVICE void copy_part(const CachedLines<DIM>& lines, u32 pair, u32 left) const {
    constexpr u32 from = TilePart<of_tile>::from / panel, to = TilePart<of_tile>::to / panel;
    if (pair > 0) empty(group, of_tile).wait((pair - 1) % 2);
    if (group == 0 && pair == 0) {
      copy_panels<QueryTile, BQ, DIM, from, to>(shared, 0, QueryRows{args, part}, part.own);
    }
    copy_panels<KeyTile, BK, DIM, from, to>(shared, tile_of(group), lines, left);
    full(group, of_tile).arrive_copied();
  }

  // Of the others: the warpgroup no longer needs a part of a group's tile.
  GRETA_DEVICE void leave(u32 group, u32 of_tile) const {
    wave_barrier();
    if (lane_index() == 0) empty(group, of_tile).arrive();
  }
};

struct Rows : GroupRows<BK> {
  u32 weights[BK / 16][4];

  // The scores of the group's tile of a pair.
  template <u32 own>
  GRETA_DEVICE void score(const Walk& walk, u32 pair) {
    score_part<own, own, false>(walk, pair);
    score_part<own, 1 - own, true>(walk, pair);
    if constexpr (parts > rest) score_part<own, rest, true>(walk, pair);
    close_products();
    finish_scores();
  }
  template <u32 own, u32 of_tile, bool add>
  GRETA_DEVICE void score_part(const Walk& walk, u32 pair) {
    walk.full(own, of_tile).wait(pair % 2);
    show_to_products();
    products_begin();
    start_scores<TilePart<of_tile>::from, TilePart<of_tile>::to, add>(walk.shared, tile_of(own), 0);
  }

  // Turns scores into weights, for this warpgroup and the other one, to which it leaves its bases.
  GRETA_DEVICE void share_weights(const Walk& walk, u32 own) {
    u8* const place = walk.memory + weights_of(own);
    if (replace) partial_sync<warpgroup_size>(scores_ready + own);  // no wave reads the tile's last dimensions
    weigh(walk.args.scale, [&](u32 r, u32 c, u32 pair) {
      weights[c / 2][c % 2 * 2 + r] = pair;
      put_weights(place, row(r), c, column(0), pair);
    });
    GRETA_UNROLL
    for (u32 r = 0; r < 2; ++r) {
      if (first_lane()) bases_of(walk, own)[row(r)] = base[r];
    }
    show_to_products();
    partial_arrive<JOINERS>(weights_ready + own);
  }
  static GRETA_DEVICE float* bases_of(const Walk& walk, u32 group) {
    return reinterpret_cast<float*>(walk.memory + bases_start) + group * BQ;
  }

  // Waits for the other warpgroup's weights, and moves to its bases.
  GRETA_DEVICE void take_weights(const Walk& walk, u32 other) {
    partial_sync<JOINERS>(weights_ready + other);
    float kept[2];
    bool moved = false;
    GRETA_UNROLL
    for (u32 r = 0; r < 2; ++r) {
      const float now = bases_of(walk, other)[row(r)], before = base[r];
      moved = moved || now != before;
      kept[r] = now != before ? fast_exp2(before * walk.args.scale - now * walk.args.scale) : 1.0f;
      base[r] = now;
      sum[r] *= kept[r];
    }
    if (wave_any(moved)) multiply_out(kept);
  }

  // Start the products of the group's values with its own weights, and with the other one's.
  GRETA_DEVICE void start_own_values(const Walk& walk, u32 own) {
    products_begin();
    const OperandPlace values = values_of(walk.shared, tile_of(own));
    GRETA_UNROLL
    for (u32 key = 0; key < BK; key += 16) {
      const OperandPlace b = further(values, KeyTile::template part<false>(0, key));
      multiply_async<false, true>(In(), out, weights[key / 16], b);
    }
    close_products();
  }
  GRETA_DEVICE void start_other_values(const Walk& walk, u32 other) {
    products_begin();
    start_values(walk.shared, weights_of(other), tile_of(other));
  }

  // The walk of the first warpgroup, and of the second one.
  GRETA_DEVICE void go_first(const Walk& walk, const Sight (&sight)[2]) {
    float greatest[2], kept[2];
    GRETA_NO_UNROLL
    for (u32 pair = 0; pair * GROUPS * BK < walk.end; ++pair) {
      const u32 key = pair * GROUPS * BK;
      score<0>(walk, pair);
      mask(sight, walk.part.slice.begin + key);
      find_greatest(greatest);
      if (move_bases(greatest, walk.args.scale, kept)) multiply_out(kept);
      share_weights(walk, 0);
      start_own_values(walk, 0);
      finish_values();
      walk.leave(0, 0);
      if (key + BK >= walk.end) break;
      take_weights(walk, 1);
      start_other_values(walk, 1);
      finish_values();
      walk.leave(1, 0);
      walk.leave(1, rest);
    }
  }
  GRETA_DEVICE void go_second(const Walk& walk, const Sight (&sight)[2]) {
    float greatest[2], kept[2];
    GRETA_NO_UNROLL
    for (u32 pair = 0; pair * GROUPS * BK < walk.end; ++pair) {
      const u32 key = (pair * GROUPS + 1) * BK;
      const bool both = key < walk.end;
      if (both) score<1>(walk, pair);
      take_weights(walk, 0);
      start_other_values(walk, 0);
      if (!both) {
        finish_values();
        break;
      }
      mask(sight, walk.part.slice.begin + key);
      find_greatest(greatest);
      const bool moved = move_bases(greatest, walk.args.scale, kept);
      share_weights(walk, 1);
      finish_values();
      walk.leave(0, 1);
      walk.leave(0, rest);
      if (moved) multiply_out(kept);
      start_own_values(walk, 1);
      finish_values();
      walk.leave(1, 1);
    }
  }
};

GRETA_KERNEL(THREADS) latent_attention_pingpong(TREE_PARAMETER ATTENTION_PARAMETERS) {
  begin_launch();
  GRETA_PANELS_SHARED(u8, memory);
  Arguments args = ATTENTION_ARGUMENTS;
  const Part part = pick_part(args);
  if (!part.exists()) return;
  const Walk walk{args, part, memory, shared_memory(memory), part.slice.end - part.slice.begin};
  const u32 group = warpgroup_index();
  if (thread_index() == 0) walk.open();
  block_barrier();
  if (group == GROUPS) {
    give_registers<few_registers>();
    walk.copy();
    return;
  }
  take_registers<many_registers>();

  Rows rows;
  rows.begin();
  Sight sight[2];
  find_sight(args, TREE_ARGUMENT, part, sight);
  if (group == 0) {
    rows.go_first(walk, sight);
  } else {
    rows.go_second(walk, sight);
  }
  rows.join_sums(reinterpret_cast<float*>(memory + sums_start));  // after its barrier, nobody reads tiles
  store_rows<true>(args, part, rows, memory);
}
