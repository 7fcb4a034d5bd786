// Scaled products of numbers of eight bits on the matrix cores of warpgroups, which read what one
// thread of a further wave copies to shared memory: a box of each operand for every 128 k
// (tensor_copy.hip), the k of one panel and of a block of scales. Of the STAGES buffers, each has a
// barrier that ends a phase when its boxes are there, and one that does when all who read it are done.
//
// GROUPS warpgroups share the BM rows of a tile, 64 or more of these each, and multiply them by its BN
// columns. Matrix cores add fp8 with fewer bits than f32 has, so threads add the sums of each 128 k,
// with SCALES=2 times their scales, in f32. Integers stay in the matrix cores until the end, or with
// SCALES=2 for 128 k.
//
// CLUSTER_M x CLUSTER_N workgroups compute neighbouring tiles: each copies its share of a box to all
// that need it. With RESIDENT, a workgroup computes tiles until there are none left, and stores one
// while the next one's first steps are copied. With STORE=1 bulk copies store it while the next one is
// multiplied: rows of C then are multiples of 16 bytes. With STAGGER, each warpgroup begins a tile when
// the one before it has its first products, so that one multiplies while the other one adds or stores.
// With SUMS=2, a warpgroup of 64 rows starts the products of a step before it adds those of the step before.
//
// SPLIT workgroups share the k of a tile. With FOLD=1 the last one of them to arrive adds their sums, with
// FOLD=2 they are a cluster, of which each adds those of some columns (tma_slices.hip).

#if !defined(BM) || !defined(BN) || !defined(GROUPS) || !defined(STAGES) || !defined(CLUSTER_M) || \
    !defined(CLUSTER_N) || !defined(RESIDENT) || !defined(SWIZZLE) || !defined(STORE) ||          \
    !defined(STAGGER) || !defined(SUMS) || !defined(SPLIT) || !defined(FOLD)
#error "BM BN GROUPS STAGES CLUSTER_M CLUSTER_N RESIDENT SWIZZLE STORE STAGGER SUMS SPLIT FOLD must be defined"
#endif
#if !defined(WAVE) || !defined(SHARED_BYTES)
#error "WAVE and SHARED_BYTES must be defined"
#endif
#if BM % (GROUPS * 64) != 0 || BN % 8 != 0 || (GATE && BN % 16 != 0) || STAGES < 2
#error "GROUPS divide BM into multiples of 64, BN is a multiple of 8, or of 16 with gates, STAGES at least 2"
#endif

#if SPLIT < 1 || FOLD < 1 || FOLD > 2 || (SPLIT == 1 && FOLD == 2) || (SPLIT > 1 && RESIDENT)
#error "SPLIT is at least 1, FOLD is 1 or 2 and the latter needs SPLIT, which needs RESIDENT=0"
#endif
#if FOLD == 2 && (CLUSTER_M * CLUSTER_N > 1 || STORE || GATE || BN % (SPLIT * 8) != 0)
#error "FOLD=2 needs clusters of slices alone, STORE=0, no gates, and eights of BN for each slice"
#endif

#define THREADS (GROUPS * 4 * WAVE)  // of the warpgroups
// Registers are handed over between whole warpgroups.
#define COPIERS (GROUPS == 1 ? WAVE : 4 * WAVE)
#define CLUSTER (CLUSTER_M * CLUSTER_N)

#include "common/bulk_store.hip"
#include "common/partial_barrier.hip"
#include "common/tensor_copy.hip"
#include "common/warpgroup_bytes.hip"
#include "scaled_gemm/groups.hip"
#if CLUSTER > 1 || FOLD == 2
#include "common/cluster.hip"
#define TMA_KERNEL                                                             \
  extern "C" __global__ void __cluster_dims__(CLUSTER, 1, FOLD == 2 ? SPLIT : 1) \
      __launch_bounds__(THREADS + COPIERS, 1)
#else
#define TMA_KERNEL extern "C" __global__ void __launch_bounds__(THREADS + COPIERS, 1)
#endif

#if FORMAT == 0
typedef E4m3 Element;
#elif FORMAT == 1
typedef E5m2 Element;
#elif FORMAT == 4
typedef Int8 Element;
#else
#error "matrix cores of NVIDIA have no such numbers"
#endif

static_assert(WAVE == wave_size, "WAVE is the size of a wave");

constexpr u32 few_registers = 24;
constexpr u32 many_registers = GROUPS == 2 ? 240 : 160;

constexpr u32 step = 128;                   // k of a stage, which are the bytes of a panel's line
constexpr u32 products = BM / GROUPS / 64;  // of a warpgroup
constexpr u32 tile_columns = GATE ? BN / 2 : BN;  // of C
constexpr u32 part_columns = FOLD == 2 ? BN / SPLIT : tile_columns;  // those that a workgroup stores

typedef PanelTile<BM, 8> TileA;
typedef PanelTile<BN, 8> TileB;
constexpr u32 stage_bytes = TileA::bytes + TileB::bytes;

// C goes through shared memory: all of a wave's sums with STORE, or `stored_columns` at a time, so that
// neighbouring lanes store 16 bytes each of one row.
constexpr u32 unit = 16 / sizeof(Out);
constexpr u32 stored_columns =
    STORE || part_columns % 32 != 0 ? part_columns : part_columns % 64 == 0 ? 64 : 32;
constexpr u32 stored_pitch = stored_columns + 8;
constexpr u32 stored_rows = STORE ? products * 16 : 16;
constexpr u32 stored_bytes = stored_rows * stored_pitch * sizeof(Out);  // of a wave
// With FOLD=2 the sums of a slice take the stages' place.
constexpr u32 stages_bytes = STAGES * stage_bytes, sums_bytes = FOLD == 2 ? BM * BN * 4 : 0;
constexpr u32 stored_start = stages_bytes > sums_bytes ? stages_bytes : sums_bytes;
constexpr u32 barriers_start = stored_start + GROUPS * 4 * stored_bytes;
static_assert(barriers_start + STAGES * 2 * 8 == SHARED_BYTES, "as tma.cpp has it");
static_assert(part_columns % stored_columns == 0, "whole parts are stored");

// Barriers of the buffers. `filled`: the boxes are there; `emptied`: all waves that read them are done.
struct Stages {
  u8* first;
  u32 index = 0, parity = 0;

  GRETA_DEVICE CountedBarrier filled(u32 stage) const { return barrier_at(first, stage); }
  GRETA_DEVICE CountedBarrier emptied(u32 stage) const { return barrier_at(first, STAGES + stage); }
  GRETA_DEVICE void next() {
    index = index + 1 == STAGES ? 0 : index + 1;
    parity ^= index == 0 ? 1 : 0;
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
      emptied(stage).open(GROUPS * 4 * (CLUSTER_M + CLUSTER_N - 1));
    }
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

struct Arguments {
  ScalePair scales;
  Out* c;
  u32 n, k, tiles_m, tiles_n;  // tiles: those of clusters
  AllRows rows;
};

// A tile of the products of a group of rows, or of the only product.
struct Tile {
  Group group;   // its `row`: the cluster's first one
  u32 row, col;  // the first ones, of the group's and of C

  // Whether the cluster has any: all of its workgroups copy for each other.
  GRETA_DEVICE bool has_rows() const { return !GROUPED || group.row < group.rows; }
  GRETA_DEVICE u32 last_row() const { return group.rows - 1; }
};

// The tile of a workgroup of this rank in its cluster, whose rows are neighbours first. SWIZZLE rows
// of clusters are walked together, column by column.
GRETA_DEVICE Tile tile_of(const Arguments& args, u32 index, u32 rank) {
  const u32 band = SWIZZLE * args.tiles_n, first = index / band * SWIZZLE, within = index % band;
  const u32 width = smaller(args.tiles_m - first, SWIZZLE);
  const u32 row = first + within % width, col = within / width;
  const Group group = find_group<BM * CLUSTER_M>(args.rows, row);
  return {group, group.row + rank % CLUSTER_M * BM,
          (col * CLUSTER_N + rank / CLUSTER_M) * tile_columns};
}

// Copies lines of an operand, for the workgroups of `blocks`: with `sharing` more than this one.
template <bool sharing>
GRETA_DEVICE void copy_lines(SharedMemory shared, u32 to, const TensorMap& map, u32 k, u32 line,
                             u32 blocks, CountedBarrier barrier) {
  // The map has elements of 16 bits.
#if CLUSTER > 1
  if constexpr (sharing) {
    copy_box_to(blocks, shared, to, map, k / 2, line, barrier);
    return;
  }
#endif
  copy_box(shared, to, map, k / 2, line, barrier);
}

// Steps of 128 k, of which a workgroup has those of its slice: one at least.
struct Steps {
  u32 first, end;
};

GRETA_DEVICE Steps steps_of_slice(u32 steps) {
  const u32 slice = SPLIT > 1 ? block_z() : 0;
  return {slice * steps / SPLIT, (slice + 1) * steps / SPLIT};
}

// Lines of an operand that a workgroup copies at once: with gates, of B either those or their ups.
constexpr u32 share_a = BM / CLUSTER_N, shares_b = GATE ? 2 : CLUSTER_M, share_b = BN / shares_b;
static_assert(share_a % 8 == 0 && share_b % 8 == 0, "shares are whole groups of lines");

// One thread copies the operands of a tile's steps.
GRETA_DEVICE void produce(const Arguments& args, SharedMemory shared, const TensorMap& map_a,
                          const TensorMap& map_b, const Tile& tile, Steps steps, u32 rank,
                          Stages& at) {
  const u32 row = rank % CLUSTER_M, column = rank / CLUSTER_M;
  const u32 same_rows = blocks_of_row<CLUSTER_M, CLUSTER_N>(row);
  const u32 same_columns = blocks_of_column<CLUSTER_M>(column);
  const u32 line_a = tile.group.first + tile.row + column * share_a;
  const u32 line_b = tile.group.index * product_columns(args.n) + tile.col;
  const u32 next_share = GATE ? args.n : share_b;
  GRETA_NO_UNROLL
  for (u32 i = steps.first; i < steps.end; ++i) {
    at.emptied(at.index).wait(at.parity ^ 1);
    const CountedBarrier filled = at.filled(at.index);
    filled.expect(stage_bytes);
    const u32 to = at.index * stage_bytes, to_b = to + TileA::bytes;
    copy_lines<(CLUSTER_N > 1)>(shared, to + column * share_a * 128, map_a, i * step, line_a,
                                same_rows, filled);
    GRETA_UNROLL
    for (u32 own = 0; own < shares_b / CLUSTER_M; ++own) {
      const u32 share = row + own;
      copy_lines<(CLUSTER_M > 1)>(shared, to_b + share * share_b * 128, map_b, i * step,
                                  line_b + share * next_share, same_columns, filled);
    }
    at.next();
  }
}

#include "scaled_gemm/tma_sums.hip"
#include "scaled_gemm/tma_slices.hip"
#include "scaled_gemm/tma_store.hip"

TMA_KERNEL SCALED_ENTRY(tma)(const u8*, const u8*, const float* GRETA_READ scales_a,
                             const float* GRETA_READ scales_b, Out* __restrict__ c, u32 m, u32 n,
                             u32 k, u32 tiles_n GROUP_PARAMETERS, u32 tiles_m SLICE_PARAMETERS,
                             TENSOR_MAP_PARAMETER map_a, TENSOR_MAP_PARAMETER map_b) {
  begin_launch();
  GRETA_PANELS_SHARED(u8, shared);
  const Arguments args = {{scales_a, scales_b, (k + scale_block - 1) / scale_block},
                          c, n, k, tiles_m, tiles_n, ALL_ROWS};
  const u32 all = tiles_m * tiles_n, block = block_index<THREADS>();
  const u32 rank = block % CLUSTER, cluster = block / CLUSTER;
  const Steps steps = steps_of_slice((k + step - 1) / step);
  if (cluster >= all) return;
  const u32 clusters = RESIDENT ? gridDim.x / CLUSTER : all;
  Stages stages{shared + barriers_start};
  const SharedMemory tiles = shared_memory(shared);
  const bool copier = wave_index() == THREADS / WAVE && elected();
  if (copier) {
    expect_map(map_a);
    expect_map(map_b);
    stages.open();
  }
#if CLUSTER > 1
  __syncwarp();
  cluster_barrier_relaxed();
#else
  block_barrier();
#endif
  if (wave_index() >= THREADS / WAVE) {
    if constexpr (COPIERS > WAVE) give_registers<few_registers>();
    if (copier) {
      for (u32 index = cluster; index < all; index += clusters) {
        const Tile tile = tile_of(args, index, rank);
        if (tile.has_rows()) produce(args, tiles, map_a, map_b, tile, steps, rank, stages);
      }
      if (CLUSTER > 1) stages.drain();
    }
    if (FOLD == 2) meet_cluster();
  } else {
    if constexpr (COPIERS > WAVE) take_registers<many_registers>();
    u8* const buffer = shared + stored_start + wave_index() * stored_bytes;
    for (u32 index = cluster; index < all; index += clusters) {
      const Tile tile = tile_of(args, index, rank);
      if (!tile.has_rows()) continue;
      Totals totals = {};
      const TotalScales scales(args, tile);
      wait_to_begin();
      consume(args, tiles, tile, steps, rank, stages, totals);
      finish_tile(args, SLICES, index * CLUSTER + rank, shared, buffer, tile, scales, totals);
    }
    if (STORE) wait_for_rows_out();
  }
}
