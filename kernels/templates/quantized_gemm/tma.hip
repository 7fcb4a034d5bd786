// Products of many rows with quantised weights on the matrix cores of warpgroups. A warpgroup's weights
// are operand A of its products, from registers, where they become elements of A's type; 64 columns of C
// are the rows of a product, and BM rows of C its columns, which are read from shared memory.
//
// What one thread of a further wave copies there, in boxes (tensor_copy.hip), lies in two rings: A in
// steps of 128 k, and weights in boxes of 128 bytes of each line. Of a ring's buffers, each has a barrier
// that ends a phase when it is filled, and one that does when all who read it are done. Boxes of GGUF's
// blocks have 256 k. Where rows of blocks are no multiples of 16 bytes, lanes load their parts of
// them themselves: LINE_STAGES is 0.
//
// GROUPS warpgroups share the BN columns of a tile. With gates, a lane's two lines of a product are a gate and
// its up, and a tile has BN / 2 columns of C. The products of weights with one scale are added to
// the tile's sums with it, in f32: tma_groups.hip and tma_blocks.hip. With ROUND, weights are scaled and
// rounded to A's type before they are multiplied, and products of all k are one sum. With RESIDENT, a
// workgroup computes tiles until there are none left. SPLIT workgroups, a cluster, share K, and each adds
// up a part of the tile's rows. In a workgroup, GROUPS warpgroups have every SHARES-th box of weights, so that
// others multiply while these make operands. Each share of a workgroup has sums of its own, a slice.

#if !defined(BM) || !defined(BN) || !defined(GROUPS) || !defined(STAGES) || !defined(SPLIT) || \
    !defined(RESIDENT) || !defined(ROUND) || !defined(SHARES) || !defined(WAVE) ||          \
    !defined(SHARED_BYTES) || !defined(LINE_STAGES) || !defined(LINE_BYTES)
#error "BM BN GROUPS STAGES SPLIT RESIDENT ROUND SHARES WAVE SHARED_BYTES LINE_{STAGES,BYTES} must be defined"
#endif
#if BM % 8 != 0 || BN % (GROUPS * 64) != 0 || STAGES < 2 || (LINE_STAGES != 0 && LINE_STAGES < 2) || \
    (SPLIT > 1 && (RESIDENT || BM % SPLIT != 0))
#error "BM is of eights, GROUPS divide BN into 64s, SPLIT divides BM and needs RESIDENT=0"
#endif
#if SHARES > 2 || SHARES * GROUPS > 4 || \
    (SHARES == 2 && (RESIDENT || ROUND || STAGES < 4 || STAGES % 2 != 0))
#error "SHARES=2 needs RESIDENT=0, ROUND=0, at most two GROUPS and an even number of STAGES from four on"
#endif

#define WARPGROUPS (SHARES * GROUPS)
#define THREADS (WARPGROUPS * 4 * WAVE)  // of the warpgroups
// Registers are handed over between whole warpgroups.
#define COPIERS (WARPGROUPS == 1 ? WAVE : 4 * WAVE)
#define SLICES (SPLIT * SHARES)

#include "common/partial_barrier.hip"
#include "common/tensor_copy.hip"
#include "common/warpgroup_matrix.hip"
#include "quantized_gemm/fragments.hip"
#include "quantized_gemm/groups.hip"
#if (SLICES > 1 && (GATED || GROUPED)) || (SHARES > 1 && !SCALES_BESIDE)
#error "gates and groups have no slices, and blocks no shares"
#endif
#if SPLIT > 1
#include "common/cluster.hip"
// One workgroup at least, so that there are registers to hand over.
#define TMA_KERNEL \
  extern "C" __global__ void __cluster_dims__(1, 1, SPLIT) __launch_bounds__(THREADS + COPIERS, 1)
#else
#define TMA_KERNEL extern "C" __global__ void __launch_bounds__(THREADS + COPIERS, 1)
#endif

static_assert(WAVE == wave_size, "WAVE is the size of a wave");

// The thread that copies goes through a ring for each share.
constexpr u32 few_registers = SHARES == 1 ? 24 : WARPGROUPS == 2 ? 40 : 32;
constexpr u32 many_registers = WARPGROUPS == 2 ? 248 - SHARES * 8 : WARPGROUPS == 3 ? 160 : 112;

constexpr u32 step = 128;                    // k of a stage of A
constexpr u32 products = BN / GROUPS / 64;   // of a warpgroup

// Columns of C of a product and of a wave, and of a tile.
constexpr u32 product_cols = GATED ? 32 : 64, wave_cols = product_cols / 4;
constexpr u32 tile_cols = BN / 64 * product_cols;
// Lines of shared memory from a lane's first line to its second one. A warpgroup's gates lie before its ups.
constexpr u32 next_line = GATED ? 32 * products : 8;

typedef PanelTile<BM, step / 8> TileA;
typedef WarpgroupSums<BM> Sums;

// Buffers of weights.
#if SCALES_BESIDE
constexpr u32 steps_of_box = box_weights / step;
#else
constexpr u32 steps_of_box = 2;
constexpr u32 box_line = LINE_BYTES;
constexpr u32 block_weights = FORMAT < 4 ? 32 : 256;
constexpr u32 block_bytes = FORMAT == 2 ? 18 : FORMAT == 3 ? 34 : FORMAT == 4 ? 144 : 210;
#endif
constexpr u32 line_box = LINE_STAGES > 0 ? BN * LINE_BYTES : 0;
constexpr u32 lines_start = STAGES * TileA::bytes;
constexpr u32 rings_end = lines_start + LINE_STAGES * line_box;

// C goes through shared memory: the 64 columns of a warpgroup's product, some rows at a time, so that neighbouring
// lanes store whole lines of memory; of slices the whole tiles.
constexpr u32 unit = 16 / sizeof(Out);
constexpr u32 stored_rows = BM % 32 == 0 ? 32 : BM % 16 == 0 ? 16 : 8;
constexpr u32 stored_pitch = 64 + unit;
constexpr u32 stored_bytes = SLICES > 1 ? 0 : stored_rows * stored_pitch * sizeof(Out);  // of a warpgroup
constexpr u32 tile_pitch = BN + 4, tile_floats = BM * tile_pitch;
constexpr u32 tile_bytes = SLICES > 1 ? SHARES * tile_floats * 4 : 0;
constexpr u32 stored_start = rings_end > tile_bytes ? rings_end : tile_bytes;
constexpr u32 barriers_start = stored_start + GROUPS * stored_bytes;
static_assert(barriers_start + (STAGES + LINE_STAGES) * 2 * 8 == SHARED_BYTES, "as tma_tiles.cpp has it");

// A share's buffers and their barriers. `filled`: the box is there; `emptied`: all waves of the share are done with
// it. Each share has buffers of its own: a phase of a barrier is waited for by those who waited for the one before.
template <u32 all>
struct Ring {
  static constexpr u32 count = all / SHARES;
  u8* first;
  u32 share = 0, index = 0, parity = 0;

  GRETA_DEVICE u32 buffer() const { return SHARES == 1 ? index : share * count + index; }
  GRETA_DEVICE CountedBarrier filled() const { return barrier_at(first, buffer()); }
  GRETA_DEVICE CountedBarrier emptied() const { return barrier_at(first, all + buffer()); }
  GRETA_DEVICE void next() {
    index = index + 1 == count ? 0 : index + 1;
    parity ^= index == 0 ? 1 : 0;
  }
  // One thread, all shares' barriers.
  GRETA_DEVICE void open() const {
    for (u32 i = 0; i < all; ++i) {
      barrier_at(first, i).open(1);
      barrier_at(first, all + i).open(GROUPS * 4);
    }
  }
  // A wave is done with the buffer.
  GRETA_DEVICE void release() const {
    wave_barrier();
    if (lane_index() == 0) emptied().arrive();
  }
};

struct Rings {
  Ring<STAGES> rows;
#if LINE_STAGES
  Ring<LINE_STAGES> lines;

  // From now on these are the share's.
  GRETA_DEVICE void enter(u32 share) { rows.share = lines.share = share; }
#endif
  GRETA_DEVICE void exchange(Rings& others) {
    const Rings mine = *this;
    *this = others;
    others = mine;
  }
};

struct Arguments {
  Weights weights;
  const Out* added;
  Out* c;
  u32 n, k, tiles_m;
  AllRows rows;
};

// A tile of the products of a group of rows, or of the only product.
struct Tile {
  Group group;  // its `row`: the tile's first one
  u32 col;      // the first one of C

  GRETA_DEVICE bool has_rows() const { return !GROUPED || group.row < group.rows; }
};

// Tiles with the same weights are neighbours. Of many rows, bands of 16 tiles are one after the other, so
// that the second-level cache holds what workgroups read at the same time.
GRETA_DEVICE Tile tile_of(const Arguments& args, u32 index) {
  constexpr u32 band = 16;
  const u32 of_band = band * ((args.n + tile_cols - 1) / tile_cols), first = index / of_band * band;
  const u32 rows = smaller(band, args.tiles_m - first), in_band = index % of_band;
  return {group_of_line<BM>(args.rows, first + in_band % rows), in_band / rows * tile_cols};
}

// The first of each `blocks` tiles from `index` on that has rows, and its index, or the last tile that was
// found if there is none.
GRETA_DEVICE u32 find_tile(const Arguments& args, u32 index, u32 blocks, u32 tiles, Tile& tile) {
  for (; index < tiles; index += blocks) {
    tile = tile_of(args, index);
    if (tile.has_rows()) break;
  }
  return index;
}

#if !SCALES_BESIDE
// Boxes begin at multiples of 16 bytes: that of the block of these k this much before the block.
GRETA_DEVICE u32 bytes_before_block(u32 k) { return k / block_weights * block_bytes % 16; }
#endif

#if LINE_STAGES
// The step of a box that step i is, of those from step `first` on. Boxes of blocks begin at even steps.
GRETA_DEVICE u32 place_in_box(u32 first, u32 i) { return (SCALES_BESIDE ? i : first + i) % steps_of_box; }

// Copies neighbouring lines of a box, from this pair of bytes on. The map of panels has panels as lines.
GRETA_DEVICE void copy_lines_from(SharedMemory shared, u32 to, const TensorMap& map, u32 at, u32 line,
                                  const Ring<LINE_STAGES>& ring) {
#if PANELS
  GRETA_UNROLL
  for (u32 box = 0; box < 4; ++box) {
    copy_box(shared, to + box * (BN / 16 * 512), map, at * 16 + box * 256, line / 16, ring.filled());
  }
#else
  copy_box(shared, to, map, at, line, ring.filled());
#endif
}

// Copies the box of a tile's weights from this k on. The map has elements of 16 bits.
GRETA_DEVICE void copy_lines(const Arguments& args, SharedMemory shared, const TensorMap& map, Tile tile,
                             u32 k, const Ring<LINE_STAGES>& ring) {
  const u32 to = lines_start + ring.buffer() * line_box;
#if SCALES_BESIDE
  const u32 at = u32(bytes_of_weights(k)) / 2;
#else
  const u32 at = (k / block_weights * block_bytes - bytes_before_block(k)) / 2;
#endif
  const u32 line = first_line_of(tile.group, args.n) + tile.col;
#if GATED
  GRETA_UNROLL
  for (u32 part = 0; part < 2 * GROUPS; ++part) {  // gates and ups of each warpgroup
    copy_lines_from(shared, to + part * (next_line * box_line), map, at,
                    line + part % 2 * args.n + part / 2 * next_line, ring);
  }
#else
  copy_lines_from(shared, to, map, at, line, ring);
#endif
}
#endif

// One thread copies what a tile's steps need, from step `first` on. Boxes are for `rings`, and with SHARES for
// `others` in turn.
GRETA_DEVICE void produce(const Arguments& args, SharedMemory shared, const TensorMap& map_a,
                          const TensorMap& map_b, Tile tile, u32 first, u32 steps, Rings& rings, Rings& others) {
  GRETA_NO_UNROLL
  for (u32 i = 0; i < steps; ++i) {
    const u32 k = (first + i) * step;
#if LINE_STAGES
    const u32 place = place_in_box(first, i);
    if (place == 0 || i == 0) {
      rings.lines.emptied().wait(rings.lines.parity ^ 1);
      rings.lines.filled().expect(line_box);
      copy_lines(args, shared, map_b, tile, k - place * step, rings.lines);
      rings.lines.next();
    }
#endif
    rings.rows.emptied().wait(rings.rows.parity ^ 1);
    rings.rows.filled().expect(TileA::bytes);
    GRETA_UNROLL
    for (u32 panel = 0; panel < 2; ++panel) {
      copy_box(shared, rings.rows.buffer() * TileA::bytes + panel * TileA::panel_bytes, map_a,
               k + panel * 64, tile.group.first + tile.group.row, rings.rows.filled());
    }
    rings.rows.next();
#if SHARES > 1
    if (place_in_box(first, i + 1) == 0) rings.exchange(others);
#endif
  }
}

// A wave's share of K, and its warpgroup among those of the share.
GRETA_DEVICE u32 share_of_wave() { return SHARES == 1 ? 0 : wave_index() / (4 * GROUPS); }
GRETA_DEVICE u32 group_of_wave() { return SHARES == 1 ? wave_index() / 4 : wave_index() / 4 % GROUPS; }

// The column of the tile that a lane's first line of a product is of. The second line is of the column eight
// further, or with gates of the same one. Places are asked for in each step, without the shuffle of
// warpgroup_index().
GRETA_DEVICE u32 column_of_lane(u32 product) {
  return (group_of_wave() * products + product) * product_cols + wave_index() % 4 * wave_cols +
         lane_index() / 4;
}

// The first line of a product in shared memory that this lane has; the other one is next_line further.
GRETA_DEVICE u32 line_of_lane(u32 product) {
  return column_of_lane(product) + (GATED ? group_of_wave() * next_line : 0);
}

// The row of weights of a lane's line; those past the last one repeat it.
GRETA_DEVICE u32 row_of_weights(const Arguments& args, Tile tile, u32 product, u32 second) {
  const u32 col = tile.col + column_of_lane(product) + (GATED ? 0 : second * 8);
  return first_line_of(tile.group, args.n) + smaller(col, args.n - 1) + (GATED ? second * args.n : 0);
}

// Starts the products of `count` fragments of weights with A from k of a step on. `fresh`: sums begin with
// these.
template <bool fresh, u32 count>
GRETA_DEVICE void start_products(SharedMemory shared, u32 start, u32 k, const Fragment (&fragments)[count],
                                 Sums& sums) {
  const OperandPlace tile = operand_place<TileA, true>(shared, start);
  products_begin();
  GRETA_UNROLL
  for (u32 f = 0; f < count; ++f) {
    const OperandPlace rows = further(tile, TileA::template part<true>(0, k + 16 * f));
    if (fresh && f == 0) {
      multiply_async<true, false>(In(), sums, fragments[f], rows);
    } else {
      multiply_async<true, true>(In(), sums, fragments[f], rows);
    }
  }
  close_products();
}

#if ROUND
#include "quantized_gemm/tma_rounded.hip"
#endif

// Adds sums with the scales of a lane's two lines.
GRETA_DEVICE void add_scaled(Sums& total, const Sums& part, const float (&scale)[2]) {
  GRETA_UNROLL
  for (u32 c = 0; c < BM / 8; ++c) {
    GRETA_UNROLL
    for (u32 i = 0; i < 4; ++i) {
      total.eight[c][i] = multiply_add(scale[i / 2], part.eight[c][i], total.eight[c][i]);
    }
  }
}

#if SCALES_BESIDE
#include "quantized_gemm/tma_groups.hip"
#else
#include "quantized_gemm/tma_blocks.hip"
#endif

#include "quantized_gemm/tma_store.hip"

TMA_KERNEL QUANTIZED_ENTRY(tma)(const In*, const u8* GRETA_READ b, const Scale* GRETA_READ scales,
                                const u8* GRETA_READ zeros, const Out* GRETA_READ added,
                                Out* __restrict__ c, u32 m, u32 n, u32 k,
                                u32 tiles_m GROUP_PARAMETERS, u32 tiles, u32 slice_steps,
                                TENSOR_MAP_PARAMETER map_a
#if LINE_STAGES
                                ,
                                TENSOR_MAP_PARAMETER map_b
#endif
) {
  begin_launch();
#if !LINE_STAGES
  const TensorMap& map_b = map_a;  // not used
#endif
  GRETA_PANELS_SHARED(u8, shared);
  const Arguments args = {{b, scales, zeros}, added, c, n, k, tiles_m, ALL_ROWS};
  const u32 block = block_index<THREADS>(), steps = (k + step - 1) / step;
  if (block >= tiles) return;  // of the whole cluster
  const u32 blocks = RESIDENT ? gridDim.x : tiles;
  const u32 first = SPLIT > 1 ? smaller(block_z() * slice_steps, steps) : 0;
  const u32 of_slice = SPLIT > 1 ? smaller(slice_steps, steps - first) : steps;
#if LINE_STAGES
  Rings rings{{shared + barriers_start}, {shared + barriers_start + 2 * 8 * STAGES}};
#else
  Rings rings{{shared + barriers_start}};
#endif
  const SharedMemory memory = shared_memory(shared);
  const bool copier = wave_index() == THREADS / WAVE && elected();
  if (copier) {
    expect_map(map_a);
    rings.rows.open();
#if LINE_STAGES
    expect_map(map_b);
    rings.lines.open();
#endif
    show_barriers();
  }
  block_barrier();
  if (wave_index() >= THREADS / WAVE) {
    if constexpr (COPIERS > WAVE) give_registers<few_registers>();
    if (copier) {
      Tile tile = {};
      u32 index = find_tile(args, block, blocks, tiles, tile);
      Rings others = rings;
#if SHARES > 1
      others.enter(1);
#endif
      while (index < tiles) {
        produce(args, memory, map_a, map_b, tile, first, of_slice, rings, others);
        index = find_tile(args, index + blocks, blocks, tiles, tile);
      }
    }
#if SPLIT > 1
    __syncwarp();
    cluster_barrier_relaxed();
    cluster_barrier_relaxed();
#endif
  } else {
    if constexpr (COPIERS > WAVE) take_registers<many_registers>();
    Tile tile = {};
    u32 index = find_tile(args, block, blocks, tiles, tile);
    if (index >= tiles) return;
#if SHARES > 1
    rings.enter(share_of_wave());
#endif
    const u32 before = share_of_wave() * steps_of_box;  // steps of the slice before those of the share
    Ahead ahead = load_ahead(args, tile, before < of_slice ? first + before : 0);
    while (index < tiles) {
      Tile after = tile;
      index = RESIDENT ? find_tile(args, index + blocks, blocks, tiles, after) : tiles;
      Sums totals[products] = {};
      consume(args, shared, memory, tile, after, first, of_slice, rings, ahead, totals);
#if SLICES > 1
      store_slices(args, reinterpret_cast<float*>(shared), tile, totals);
#else
      store_tile(args, reinterpret_cast<Out*>(shared + stored_start + warpgroup_index() * stored_bytes),
                 tile, totals);
#endif
      tile = after;
    }
  }
}
