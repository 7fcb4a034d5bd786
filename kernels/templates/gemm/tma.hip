// A workgroup computes BM x BN tiles of C on the matrix cores of warpgroups (warpgroup_tile.hip),
// which read what one thread of a further wave copies to shared memory: a box of each operand for
// every K step (tensor_copy.hip). Of the STAGES buffers, each has a barrier that ends a phase when
// its boxes are there, and one that does when all who read it are done. So nobody waits for others
// than those whose data it needs, and copies run ahead into the next tile. CLUSTER_M x CLUSTER_N
// workgroups compute neighbouring tiles: each copies its share of a box to all that need it. With
// RESIDENT, a workgroup computes tiles until there are none left, and stores one while the next
// one's first steps are copied. With DYNAMIC, a counter says which one is next, so that tiles that
// take less time than others leave nobody idle. With STREAM_K, tiles that are too few for all of them are
// divided by K steps (turns.hip). With PINGPONG, its warpgroups take turns with whole
// tiles, so that one multiplies while another one stores. SPLIT and FOLD are as in matrix.hip.
//
// Where rows are in groups, a warpgroup multiplies no 64 rows that are all past the last one.

#if !defined(BM) || !defined(BN) || !defined(BK) || !defined(WM) || !defined(WN) ||             \
    !defined(STAGES) || !defined(CLUSTER_M) || !defined(CLUSTER_N) || !defined(RESIDENT) ||     \
    !defined(SWIZZLE) || !defined(WALK) || !defined(SPLIT) || !defined(FOLD) ||                 \
    !defined(GROUPS) || !defined(PINGPONG) || !defined(DYNAMIC) || !defined(STREAM_K)
#error "BM BN BK WM WN STAGES CLUSTER_M CLUSTER_N RESIDENT SWIZZLE WALK SPLIT FOLD are undefined"
#error "or GROUPS PINGPONG DYNAMIC STREAM_K"
#endif
#if !defined(WAVE) || !defined(SHARED_BYTES) || !defined(PACKED) || !defined(EARLY_B) || \
    !defined(EARLY_PARTS) || !defined(A_ALONG_K) || !defined(B_ALONG_K)
#error "WAVE, SHARED_BYTES, PACKED, EARLY_{B,PARTS} and {A,B}_ALONG_K must be defined"
#endif

#define THREADS (GROUPS * 4 * WAVE)  // of the warpgroups
// Registers are handed over between whole warpgroups.
#define COPIERS (GROUPS == 1 ? WAVE : 4 * WAVE)
#define CLUSTER (CLUSTER_M * CLUSTER_N)

#if BM / WM * (BN / WN) != (PINGPONG ? 1 : GROUPS) || (PINGPONG && (!RESIDENT || GROUPS == 1))
#error "the parts of the tile are GROUPS, or with PINGPONG one; PINGPONG needs RESIDENT and GROUPS"
#endif
#if DYNAMIC && (!RESIDENT || PINGPONG || CLUSTER > 1)
#error "DYNAMIC needs RESIDENT, and neither PINGPONG nor clusters"
#endif
#if STREAM_K && (!RESIDENT || PINGPONG || DYNAMIC || CLUSTER > 1 || GROUPED == 1 || GROUPED == 2)
#error "STREAM_K needs RESIDENT, and neither PINGPONG, DYNAMIC, clusters nor groups of rows"
#endif
#if BM % WM != 0 || BN % WN != 0 || STAGES < 2 || (RESIDENT && SPLIT > 1) || \
    (CLUSTER > 1 && FOLD == 2) || (FOLD && SPLIT == 1)
#error "parts divide the tile, STAGES are at least 2, SPLIT needs RESIDENT=0, FOLD=2 no other cluster"
#endif

#include "common/partial_barrier.hip"
#include "common/tensor_copy.hip"
#include "common/warpgroup_matrix.hip"
#include "gemm/groups.hip"
#include "gemm/mapped_tile.hip"
#include "gemm/operands.hip"
#include "gemm/tile_order.hip"
#include "gemm/turns.hip"
#include "gemm/warpgroup_tile.hip"
#if CLUSTER > 1 || FOLD == 2
#include "common/cluster.hip"
#endif

// Where the warpgroups meet.
GRETA_DEVICE void team_barrier() { partial_sync<THREADS>(1); }
#if PACKED
#include "gemm/packed_sums.hip"
#else
#define SUM_COLUMNS (RESIDENT || (HAS_RESIDUAL && STORE_VEC == 1) ? 32 : 64)
#include "gemm/matrix_sums.hip"
#endif
#if !PACKED
// matrix_sums.hip loads the residual while it stores.
struct ResidualAhead {
  GRETA_DEVICE ResidualAhead(const Arguments&, Position) {}
};
GRETA_DEVICE void put_tile(const Arguments& args, u8* shared, Position tile, const Sums& sums,
                           const ResidualAhead&) {
  put_tile(args, shared, tile, sums);
}
#endif
#if STREAM_K
#include "gemm/stream_k.hip"
#endif

#if FOLD == 2
#define TMA_KERNEL GRETA_CLUSTER_KERNEL(THREADS + COPIERS, SPLIT)
#elif CLUSTER > 1
#define TMA_KERNEL \
  extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS + COPIERS, 1)
#else
#define TMA_KERNEL extern "C" __global__ void __launch_bounds__(THREADS + COPIERS, 1)
#endif

static_assert(WAVE == wave_size, "WAVE is the size of a wave");

// Registers of a thread that copies, and of the others. A processor has four parts, to which waves
// are dealt in turn: what a part has at launch, its waves share.
constexpr u32 few_registers = 24;
constexpr u32 many_registers = GROUPS == 2 ? 240 : GROUPS == 3 ? 160 : 112;

typedef MappedTile<A_ALONG_K, BM, CLUSTER_N> MappedA;
#if B_PANELS
typedef MappedPanels<BN, CLUSTER_M> MappedB;
#else
typedef MappedTile<B_ALONG_K, BN, CLUSTER_M, GATED> MappedB;
#endif

constexpr u32 stage_bytes = MappedA::Tile::bytes + MappedB::Tile::bytes;
constexpr u32 tiles_bytes = STAGES * stage_bytes;

// Of shared memory: an inbox, then the tiles, and sums in their place or with RESIDENT behind them;
// then the barriers.
constexpr u32 sums_start = inbox_bytes + (RESIDENT ? tiles_bytes : 0);
constexpr u32 sums_end = sums_start + sums_bytes();
constexpr u32 tiles_end = inbox_bytes + tiles_bytes;
constexpr u32 barriers_start = sums_end > tiles_end ? sums_end : tiles_end;
static_assert(COPIERS == WAVE || few_registers + GROUPS * many_registers <=
                                     (GROUPS + 1) * registers_at_launch<THREADS + COPIERS>(),
              "a warpgroup would wait for registers for ever");
constexpr u32 barriers = STAGES * 2 + (PINGPONG ? GROUPS : 0) + (DYNAMIC ? STAGES : 0) + STREAM_K;
static_assert(barriers_start + barriers * 8 == SHARED_BYTES, "as TmaKernel::shared_bytes() has it");

// Waves of a workgroup that read a buffer.
constexpr u32 readers = PINGPONG ? 4 : THREADS / WAVE;

// Barriers of the buffers. `filled`: the boxes are there; `emptied`: all waves that read them are done.
struct Stages {
  u8* first;
  u32 index = 0, parity = 0;

  GRETA_DEVICE CountedBarrier filled(u32 stage) const { return barrier_at(first, stage); }
  GRETA_DEVICE CountedBarrier emptied(u32 stage) const { return barrier_at(first, STAGES + stage); }
  // With PINGPONG: the warpgroup before this one has multiplied its tile.
  GRETA_DEVICE CountedBarrier turn_of(u32 group) const { return barrier_at(first, 2 * STAGES + group); }
  // With DYNAMIC: the tile whose operands this stage has, in the place of a barrier.
  GRETA_DEVICE volatile u32& tile() const {
    return *reinterpret_cast<volatile u32*>(first + (2 * STAGES + index) * 8);
  }
  // With STREAM_K: a word of the warpgroups that multiply, in the place of a barrier.
  GRETA_DEVICE u32* word() const { return reinterpret_cast<u32*>(first + 2 * STAGES * 8); }
  GRETA_DEVICE void next() {
    index = index + 1 == STAGES ? 0 : index + 1;
    parity ^= index == 0 ? 1 : 0;
  }

  // Leaves out steps that others take.
  GRETA_DEVICE void skip(u32 steps) {
    const u32 next = index + steps;
    parity ^= next / STAGES % 2;
    index = next % STAGES;
  }

  // Returns when all that read what the thread copied are done: others count at this workgroup's
  // barriers until then.
  GRETA_DEVICE void drain() {
    for (u32 stage = 0; stage < STAGES; ++stage, next()) emptied(index).wait(parity ^ 1);
  }

  // One thread.
  GRETA_DEVICE void open() const {
    for (u32 stage = 0; stage < STAGES; ++stage) {
      filled(stage).open(1);
      emptied(stage).open(readers * (CLUSTER_M + CLUSTER_N - 1));
    }
    for (u32 group = 0; PINGPONG && group < GROUPS; ++group) turn_of(group).open(4);
    show_barriers();
  }
  // A wave is done with this buffer: all that copy to it are told.
  GRETA_DEVICE void release(u32 stage, u32 rank) const {
    wave_barrier();
#if CLUSTER > 1
    const u32 other = lane_index();
    const bool same = other / CLUSTER_M == rank / CLUSTER_M || other % CLUSTER_M == rank % CLUSTER_M;
    if (other < CLUSTER && same) emptied(stage).arrive_at(other);
#else
    if (lane_index() == 0) emptied(stage).arrive();
#endif
  }
};

// A tile of the products of a group of rows, or of the only product.
struct OutputTile {
  Group group;  // its `row`: the cluster's first one
  Position at;

  // Whether the cluster has any: all of its workgroups copy for each other.
  GRETA_DEVICE bool has_rows() const { return !GROUPED || group.row < group.rows; }
};

// The workgroup's place: rank in its cluster, whose rows are neighbours first.
struct Place {
  u32 rank, cluster;

  GRETA_DEVICE OutputTile tile(const Arguments& args, u32 index) const {
    const Position at = tile_at<WALK == 1>(args, index);
    const Group group = find_group<BM * CLUSTER_M>(args, at.row);
    return {group,
            {group.row + rank % CLUSTER_M * BM, (at.col * CLUSTER_N + rank / CLUSTER_M) * BN}};
  }
};

// The operands of a tile, which one thread copies.
struct Operands {
  const TensorMap &map_a, &map_b;
  u32 row, column;              // in the cluster
  u32 same_rows, same_columns;  // workgroups that get the same rows of A, or columns of B
  u32 line_a, line_b, first_a, first_b;

  // Those with the same rows of A: of one column in the cluster, a rank apart by CLUSTER_M.
  GRETA_DEVICE Operands(const Arguments& args, const TensorMap& a, const TensorMap& b,
                        const OutputTile& tile, u32 rank)
      : map_a(a),
        map_b(b),
        row(rank % CLUSTER_M),
        column(rank / CLUSTER_M),
        same_rows(blocks_of_row<CLUSTER_M, CLUSTER_N>(row)),
        same_columns(blocks_of_column<CLUSTER_M>(column)),
        line_a(first_line_a(args, tile.group)),
        line_b(first_line_b(args, tile.group)),
        first_a(tile.at.row + (A_ALONG_K ? line_a : 0)),
        first_b(tile.at.col + (B_ALONG_K ? line_b : 0)) {}

  GRETA_DEVICE void copy_a(SharedMemory shared, u32 k, const Stages& at, u32 stage) const {
    MappedA::copy(shared, stage * stage_bytes, map_a, first_a, k + (A_ALONG_K ? 0 : line_a), column,
                  same_rows, at.filled(stage));
  }
  GRETA_DEVICE void copy_b(SharedMemory shared, u32 k, const Stages& at, u32 stage) const {
    MappedB::copy(shared, stage * stage_bytes + MappedA::Tile::bytes, map_b, first_b,
                  k + (B_ALONG_K ? 0 : line_b), row, same_columns, at.filled(stage));
  }
};

// One thread copies the operands of a tile's K steps, which start at `k`.
GRETA_DEVICE void produce(const Operands& operands, SharedMemory shared, u32 index, u32 k, u32 steps,
                          Stages& at) {
  GRETA_NO_UNROLL
  for (u32 step = 0; step < steps; ++step) {
    at.emptied(at.index).wait(at.parity ^ 1);
    if (DYNAMIC) at.tile() = index;
    at.filled(at.index).expect(stage_bytes);
    operands.copy_a(shared, k, at, at.index);
    operands.copy_b(shared, k, at, at.index);
    at.next();
    k += BK;
  }
}

// The same for the first steps, at most STAGES. With EARLY_B, B is copied before earlier launches end.
GRETA_DEVICE void produce_first(const Operands& operands, SharedMemory shared, u32 index, u32 k,
                                u32 steps, Stages& at) {
#if EARLY_B
  GRETA_NO_UNROLL
  for (u32 step = 0; step < steps; ++step) {
    at.filled(step).expect(stage_bytes);
    operands.copy_b(shared, k + step * BK, at, step);
  }
  await_earlier_launches();
  GRETA_NO_UNROLL
  for (u32 step = 0; step < steps; ++step, at.next()) {
    if (DYNAMIC) at.tile() = index;
    operands.copy_a(shared, k + step * BK, at, step);
  }
#else
  produce(operands, shared, index, k, steps, at);
#endif
}

template <u32 live, bool add = true>
GRETA_DEVICE void multiply_stage(const Parts& parts, const Stages& at, Sums& sums) {
  const u32 start = at.index * stage_bytes;
  at.filled(at.index).wait(at.parity);
  multiply_tiles<MappedA::Tile, MappedB::Tile, live, add>(parts, start, sums);
}

// Warpgroups multiply what the thread copies: the first `live` of their products. A buffer is released
// when the next one's products have been started.
template <u32 live>
GRETA_DEVICE void consume(SharedMemory shared, u32 steps, u32 rank, Stages& at, Sums& sums) {
  const Parts parts = warpgroup_parts<MappedA::Tile, MappedB::Tile>(shared);
  multiply_stage<live, products == 1>(parts, at, sums);
  u32 before = at.index;
  at.next();
  GRETA_NO_UNROLL
  for (u32 step = 1; step < steps; ++step) {
    multiply_stage<live>(parts, at, sums);
    wait_for_products<1>();
    at.release(before, rank);
    before = at.index;
    at.next();
  }
  finish_products(sums);
  at.release(before, rank);
}

// Of a tile of a group, products whose rows are past the last one are left out.
template <u32 live = products>
GRETA_DEVICE void consume_rows(SharedMemory shared, u32 rows, u32 steps, u32 rank, Stages& at,
                               Sums& sums) {
  if constexpr (GROUPED == 1 || GROUPED == 2) {
    if constexpr (live == 0) {
      GRETA_NO_UNROLL
      for (u32 step = 0; step < steps; ++step) {
        at.filled(at.index).wait(at.parity);
        at.release(at.index, rank);
        at.next();
      }
      return;
    } else if constexpr (!swapped) {
      if (rows <= (live - 1) * 64) {
        consume_rows<live - 1>(shared, rows, steps, rank, at, sums);
        return;
      }
    }
  }
  consume<live>(shared, steps, rank, at, sums);
}

TMA_KERNEL GEMM_ENTRY(tma)(GEMM_PARAMETERS, TENSOR_MAP_PARAMETER map_a, TENSOR_MAP_PARAMETER map_b) {
#if EARLY_B
  begin_launch_early();
#else
  begin_launch();
#endif
  GRETA_PANELS_SHARED(u8, shared);
  const Arguments args = GEMM_ARGUMENTS;
  const u32 all = tiles_m * tiles_n, block = block_index<THREADS>();
  const Place place{block % CLUSTER, block / CLUSTER};
  if (!STREAM_K && place.cluster >= all) return;
  const u32 clusters = RESIDENT ? gridDim.x / CLUSTER : all;
  Stages stages{shared + barriers_start};
  const SharedMemory tiles = shared_memory(shared + inbox_bytes);
  const u32 k_begin = block_z() * slice, steps = steps_of(args, k_begin);
  // Copies don't wait for the other threads: only for blocks that they go to.
  const Turns turns(all, steps, clusters, place.cluster);
  const Turn first_turn = turns.first();
  const OutputTile first = place.tile(args, first_turn.tile);
  const u32 early = CLUSTER == 1 && first.has_rows() ? smaller(first_turn.steps, STAGES) : 0;
  const bool copier = wave_index() == THREADS / WAVE && elected();
  if (copier) {
    expect_map(map_a);
    expect_map(map_b);
    stages.open();
    produce_first({args, map_a, map_b, first, place.rank}, tiles, first_turn.tile,
                  k_begin + first_turn.step * BK, early, stages);
  }
  await_earlier_launches();
#if FOLD == 2
  const Inbox inbox{reinterpret_cast<u64*>(shared)};
  inbox.open(received_by(block_z()));
#endif
#if CLUSTER > 1
  __syncwarp();
  cluster_barrier_relaxed();
#else
  block_barrier();
#endif
#if FOLD == 2
  if (inbox_apart) inbox.let_others_send();
#endif
  if (wave_index() >= THREADS / WAVE) {
    if constexpr (COPIERS > WAVE) give_registers<few_registers>();
    if (copier) {
      u32 done = early;
      for (Turn turn = first_turn; turn.tile < all; turns.go_on(turn, args.counters)) {
        const OutputTile tile =
            turn.tile == first_turn.tile ? first : place.tile(args, turn.tile);
        if (!tile.has_rows()) continue;
        produce({args, map_a, map_b, tile, place.rank}, tiles, turn.tile,
                k_begin + (turn.step + done) * BK, turn.steps - done, stages);
        done = 0;
      }
      if (CLUSTER > 1) stages.drain();
      if (DYNAMIC) {  // a stage without operands says that there are no more
        stages.emptied(stages.index).wait(stages.parity ^ 1);
        stages.tile() = all;
        stages.filled(stages.index).arrive();
      }
    }
  } else {
    if constexpr (COPIERS > WAVE) take_registers<many_registers>();
    const u32 group = PINGPONG ? warpgroup_index() : 0;
    u32 others = group, parity = group == 0 ? 1 : 0;
    for (Turn turn = first_turn;; turns.go_on(turn)) {
      if (DYNAMIC) {
        stages.filled(stages.index).wait(stages.parity);
        turn.tile = stages.tile();
      }
      if (turn.tile >= all) break;
      const OutputTile tile = turn.tile == first_turn.tile ? first : place.tile(args, turn.tile);
      if (!tile.has_rows()) continue;
      if (PINGPONG && others != 0) {  // another warpgroup's tile
        stages.skip(steps);
        --others;
        continue;
      }
      others = GROUPS - 1;
      Sums sums = {};
      const Arguments of_tile = of_group(args, tile.group);
      ResidualAhead residual(of_tile, tile.at);
      if (PINGPONG) stages.turn_of(group).wait(parity);
      const u32 row = tile.at.row + warpgroup_position().row;
      consume_rows(tiles, row < tile.group.rows ? tile.group.rows - row : 0, turn.steps, place.rank,
                   stages, sums);
      if (PINGPONG) {
        parity ^= 1;
        if (lane_index() == 0) stages.turn_of((group + 1) % GROUPS).arrive();
      }
#if STREAM_K
      if (turn.steps < steps && !collect_sums(args, turns, turn, stages.word(), sums)) continue;
#endif
      if (!RESIDENT) team_barrier();  // all are done with the tiles, where sums go
      put_tile(of_tile, shared + sums_start - inbox_bytes, tile.at, sums, residual);
    }
  }
}
