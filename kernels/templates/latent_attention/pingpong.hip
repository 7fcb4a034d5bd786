// Rows that share keys (rows.hip) by two warpgroups of sm_90 that alternate: of each pair of tiles of BK lines, each
// computes the scores of one and turns them into weights, while the other multiplies. Both add the values of both
// tiles, each to its half of the dimensions of the outputs (group_rows.hip). Weights pass through shared memory,
// where they replace the last dimensions of their tile if no value has these. A third warpgroup starts asynchronous
// copies of the parts of a tile, each when the products with what was there before have ended. A workgroup has one
// of SPLIT slices of its rows' keys or, with STREAM_K, its part of the keys of all sequences (stream_keys.hip).
// Slices are joined by rows_join.hip. Source of the order of products: FlashMLA's kernel for sm_90 (DeepSeek, 2025).
#if !defined(BK) || !defined(STREAM_K)
#error "BK and STREAM_K must be defined"
#endif
#if BK % 16 != 0 || BK > 64
#error "BK is a multiple of 16, at most 64"
#endif
#if STREAM_K && SPLIT != 1
#error "STREAM_K divides the keys without SPLIT"
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
#if STREAM_K
#include "latent_attention/stream_keys.hip"
#else
// Gives run(part) the part of this workgroup.
template <typename Run>
GRETA_DEVICE void each_part(Arguments& args, Run run) {
  const Part part = pick_part(args);
  if (part.exists()) run(part);
}
#endif

// Registers of a copying thread, and of the others'. A warpgroup waits until there are enough of those that the
// workgroup got at its launch.
constexpr u32 few_registers = 56, many_registers = 224;
static_assert(few_registers + GROUPS * many_registers <= (GROUPS + 1) * registers_at_launch<THREADS>(),
              "a warpgroup would wait for registers for ever");

// Parts of a tile: the values of each warpgroup, and the dimensions after them, if there are any.
constexpr u32 rest = GROUPS, values_end = GROUPS * group_values, rest_dims = padded - values_end;

// Where things are in shared memory.
constexpr bool replace = panel == 64 && rest_dims >= 64;
constexpr u32 weights_bytes = replace ? 0 : panels_bytes(WeightTile::bytes);
constexpr u32 weights_start = keys_start + GROUPS * tile_bytes;
constexpr u32 bases_start = weights_start + GROUPS * weights_bytes;
constexpr u32 sums_start = bases_start + GROUPS * BQ * 4, barriers_start = sums_start + GROUPS * BQ * 4;
constexpr u32 barriers = GROUPS * 2 * 3 + 3, part_start = barriers_start + (barriers + 1) / 2 * 16;
static_assert(sizeof(Part) <= 48, "the workgroup has 48 bytes for each of two parts");

GRETA_DEVICE constexpr u32 tile_of(u32 group) { return keys_start + group * tile_bytes; }
GRETA_DEVICE constexpr u32 weights_of(u32 group) {
  return replace ? tile_of(group) + values_end / panel * KeyTile::panel_bytes
                 : weights_start + group * weights_bytes;
}

// What both sides of copies know. Tiles of a group are counted through all parts of the workgroup. The copying
// warpgroup picks the parts.
struct Walk {
  const Arguments& args;
  u8* memory;
  SharedMemory shared;

  // A part of a group's tile is there; it may be replaced; the workgroup's next part is known; the last one's rows
  // are stored.
  GRETA_DEVICE CountedBarrier full(u32 group, u32 of_tile) const {
    return barrier_at(memory + barriers_start, group * 3 + of_tile);
  }
  GRETA_DEVICE CountedBarrier empty(u32 group, u32 of_tile) const {
    return barrier_at(memory + barriers_start, (GROUPS + group) * 3 + of_tile);
  }
  GRETA_DEVICE CountedBarrier picked(u32 number) const {
    return barrier_at(memory + barriers_start, barriers - 3 + number % 2);
  }
  GRETA_DEVICE CountedBarrier stored() const { return barrier_at(memory + barriers_start, barriers - 1); }
  // Part `number` of the workgroup, until the one after the next is picked.
  GRETA_DEVICE Part& part(u32 number) const {
    return reinterpret_cast<Part*>(memory + part_start)[number % 2];
  }
  GRETA_DEVICE void open() const {
    constexpr u32 waves = 4;  // of a warpgroup
    for (u32 i = 0; i < GROUPS * 3; ++i) {
      full(0, i).open(COPIERS);
      empty(0, i).open(waves);
    }
    picked(0).open(waves);
    picked(1).open(waves);
    stored().open(GROUPS * waves);
    show_barriers();
  }

  // The wave has ended what it did with a part of a tile or with stored rows, or has picked a part.
  GRETA_DEVICE void leave(CountedBarrier barrier) const {
    wave_barrier();
    if (lane_index() == 0) barrier.arrive();
  }
};

// The copying warpgroup.
struct Copies {
  const Walk& walk;
  u32 done[GROUPS], parts, stored;  // tiles of each group, parts of the workgroup, and those of them that are stored

  // Tells the others the next part, without own rows after the last one, and brings it. What comes after another
  // part has its keys ahead: queries wait until that part's outputs, which have their place, are stored.
  GRETA_DEVICE void bring(const Part& part) {
    const u32 end = part.slice.end - part.slice.begin;
    const bool first = parts == 0;
    // Rows without keys wait for no copy, so the part before must be stored before they begin.
    if (!first && end == 0) await_stored();
    pick(part);
    ++parts;
    if (end == 0) return;
    const KeyLines keys =
        KeyLines(walk.args, walk.args.k, part.tile.sequence, part.tile.head).from(part.slice.begin);
    if (first) bring_queries(part);
    GRETA_NO_UNROLL
    for (u32 tile = 0; tile * BK < end; ++tile) {
      const u32 group = tile % GROUPS, key = tile * BK;
      const CachedLines<DIM> lines{keys.from(key)};
      const bool early = !first && tile < GROUPS;
      GRETA_NO_UNROLL
      for (u32 i = 0; i < GROUPS; ++i) copy_part<group_values>(lines, end - key, group, i ^ group, early);
      if constexpr (rest_dims > 0) copy_part<rest_dims>(lines, end - key, group, rest, early);
      done[0] += 1 - group;
      done[1] += group;
      if (early && (group > 0 || end <= BK)) {
        await_stored();
        bring_queries(part);
        for (u32 i = 0; i < (group + 1) * 3; ++i) walk.full(0, i).arrive_copied();
      }
    }
  }

 private:
  // Each phase is waited for once. It ends only after all waves have waited for that of the part before: of a part
  // with keys, its queries arrive afterwards, and one without is picked afterwards.
  GRETA_DEVICE void await_stored() { walk.stored().wait(stored++ % 2); }
  GRETA_DEVICE void pick(const Part& part) const {
    if (thread_index() % COPIERS == 0) walk.part(parts) = part;
    walk.leave(walk.picked(parts));
  }
  GRETA_DEVICE void bring_queries(const Part& part) const {
    copy_lines<QueryTile, BQ, DIM>(walk.shared, 0, QueryRows{walk.args, part}, part.own);
  }
  template <u32 dims>
  GRETA_DEVICE void copy_part(const CachedLines<DIM>& lines, u32 left, u32 group, u32 of_tile,
                              bool early) const {
    const u32 first = of_tile * (group_values / panel), before = group == 0 ? done[0] : done[1];
    if (before > 0) walk.empty(group, of_tile).wait((before - 1) % 2);
    copy_panels<KeyTile, BK, DIM, dims / panel>(walk.shared, tile_of(group), lines, left, first);
    if (!early) walk.full(group, of_tile).arrive_copied();
  }
};

struct Rows : GroupRows<BK> {
  u32 weights[BK / 16][4];

  // The scores of tile number `tile` of this warpgroup.
  GRETA_DEVICE void score(const Walk& walk, u32 tile) {
    score_part<group_values, false>(walk, tile, group);
    score_part<group_values, true>(walk, tile, 1 - group);
    if constexpr (rest_dims > 0) score_part<rest_dims, true>(walk, tile, rest);
    close_products();
    finish_scores();
  }
  template <u32 dims, bool add>
  GRETA_DEVICE void score_part(const Walk& walk, u32 tile, u32 of_tile) {
    walk.full(group, of_tile).wait(tile % 2);
    show_to_products();  // what other threads have copied, to this thread's products
    products_begin();
    start_scores<dims, add>(walk.shared, tile_of(group), 0, of_tile * group_values);
  }

  // Turns scores into weights, for this warpgroup and the other one, to which it leaves its bases.
  GRETA_DEVICE void share_weights(const Walk& walk) {
    u8* const place = walk.memory + weights_of(group);
    if (replace) partial_sync<warpgroup_size>(scores_ready + group);  // all waves have read the tile's last dimensions
    weigh(walk.args.scale, [&](u32 r, u32 c, u32 pair) {
      weights[c / 2][c % 2 * 2 + r] = pair;
      put_weights(place, row(r), c, column(0), pair);
    });
    GRETA_UNROLL
    for (u32 r = 0; r < 2; ++r) {
      if (first_lane()) bases_of(walk, group)[row(r)] = base[r];
    }
    show_to_products();
    partial_arrive<JOINERS>(weights_ready + group);
  }
  static GRETA_DEVICE float* bases_of(const Walk& walk, u32 group) {
    return reinterpret_cast<float*>(walk.memory + bases_start) + group * BQ;
  }

  // Waits for the other warpgroup's weights, and moves to its bases.
  GRETA_DEVICE void take_weights(const Walk& walk) {
    partial_sync<JOINERS>(weights_ready + 1 - group);
    float kept[2];
    bool moved = false;
    GRETA_UNROLL
    for (u32 r = 0; r < 2; ++r) {
      const float now = bases_of(walk, 1 - group)[row(r)], before = base[r];
      const bool moves = now != before;
      moved = moved || moves;
      kept[r] = moves ? fast_exp2(before * walk.args.scale - now * walk.args.scale) : 1.0f;
      base[r] = now;
      sum[r] *= kept[r];
    }
    if (wave_any(moved)) multiply_out(kept);
  }

  // Start the products of the warpgroup's values with its own weights, and with the other one's.
  GRETA_DEVICE void start_own_values(const Walk& walk) {
    products_begin();
    const OperandPlace values = values_of(walk.shared, tile_of(group));
    GRETA_UNROLL
    for (u32 key = 0; key < BK; key += 16) {
      const OperandPlace b = further(values, KeyTile::template part<false>(0, key));
      multiply_async<false, true>(In(), out, weights[key / 16], b);
    }
    close_products();
  }
  GRETA_DEVICE void start_other_values(const Walk& walk) {
    products_begin();
    start_values(walk.shared, weights_of(1 - group), tile_of(1 - group));
  }

  // The walk of the first warpgroup through pairs of tiles of a part, and of the second one. `tile`: the number of
  // the warpgroup's next tile, which is returned at the end.
  GRETA_DEVICE u32 go_first(const Walk& walk, Slice slice, const Sight (&sight)[2], u32 tile) {
    float greatest[2], kept[2];
    GRETA_NO_UNROLL
    for (u32 key = slice.begin; key < slice.end; key += GROUPS * BK) {
      score(walk, tile++);
      mask(sight, key);
      find_greatest(greatest);
      if (move_bases(greatest, walk.args.scale, kept)) multiply_out(kept);
      share_weights(walk);
      start_own_values(walk);
      finish_values();
      walk.leave(walk.empty(0, 0));
      if (key + BK >= slice.end) break;
      take_weights(walk);
      start_other_values(walk);
      finish_values();
      walk.leave(walk.empty(1, 0));
      walk.leave(walk.empty(1, rest));
    }
    return tile;
  }
  GRETA_DEVICE u32 go_second(const Walk& walk, Slice slice, const Sight (&sight)[2], u32 tile) {
    float greatest[2], kept[2];
    GRETA_NO_UNROLL
    for (u32 key = slice.begin + BK; key < slice.end + BK; key += GROUPS * BK) {
      const bool both = key < slice.end;
      if (both) score(walk, tile++);
      take_weights(walk);
      start_other_values(walk);
      bool moved = false;
      if (both) {
        mask(sight, key);
        find_greatest(greatest);
        moved = move_bases(greatest, walk.args.scale, kept);
        share_weights(walk);
      }
      finish_values();
      walk.leave(walk.empty(0, 1));
      walk.leave(walk.empty(0, rest));
      if (!both) break;
      if (moved) multiply_out(kept);
      start_own_values(walk);
      finish_values();
      walk.leave(walk.empty(1, 1));
    }
    return tile;
  }
};

GRETA_KERNEL(THREADS) latent_attention_pingpong(TREE_PARAMETER ATTENTION_PARAMETERS) {
#if SPLIT > 1 || STREAM_K
  begin_launch_whole();  // a workgroup has all registers of a processor: a join's would find none beside it
#else
  begin_launch();
#endif
  GRETA_PANELS_SHARED(u8, memory);
  Arguments args = ATTENTION_ARGUMENTS;
  const Walk walk{args, memory, shared_memory(memory)};
  const u32 group = warpgroup_index();
  if (thread_index() == 0) walk.open();
  block_barrier();
  if (group == GROUPS) {
    give_registers<few_registers>();
    Copies copies{walk, {}, 0, 0};
    each_part(args, [&](const Part& part) { copies.bring(part); });
    copies.bring({});
    close_copies();
    wait_for_copies<0, 0>();
    return;
  }
  take_registers<many_registers>();

  u32 tile = 0;
  GRETA_NO_UNROLL
  for (u32 number = 0;; ++number) {
    walk.picked(number).wait(number / 2 % 2);
    const Part& part = walk.part(number);
    if (part.own == 0) break;
    Rows rows;
    rows.begin();
    Sight sight[2];
    find_sight(args, TREE_ARGUMENT, part, sight);
    if (group == 0) {
      tile = rows.go_first(walk, part.slice, sight, tile);
    } else {
      tile = rows.go_second(walk, part.slice, sight, tile);
    }
    rows.join_sums(reinterpret_cast<float*>(memory + sums_start));  // after its barrier, nobody reads tiles
    rows.store(args, part, memory);
    walk.leave(walk.stored());
  }
}
