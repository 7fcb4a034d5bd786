// Products of many rows with quantised weights on the matrix cores of warpgroups. A warpgroup's weights
// are operand A of its products, from registers, where they become elements of A's type; 64 columns of C
// are the rows of a product, and BM rows of C its columns, which are read from shared memory.
//
// What one thread of a further wave copies there, in boxes (tensor_copy.hip), lies in two rings: A in
// steps of 128 k, and weights in boxes of 128 bytes of each line. Of a ring's buffers, each has a barrier
// that ends a phase when it is filled, and one that does when all who read it are done. Blocks of GGUF
// files begin anywhere: lanes load their parts of them themselves.
//
// GROUPS warpgroups share the BN columns of a tile. The products of weights with one scale are added to
// the tile's sums with it, in f32: tma_groups.hip and tma_blocks.hip. With ROUND, weights are scaled and
// rounded to A's type before they are multiplied, and products of all k are one sum. With RESIDENT, a
// workgroup computes tiles until there are none left. SPLIT workgroups, a cluster, share K, and each adds
// up a share of the tile's rows.

#if !defined(BM) || !defined(BN) || !defined(GROUPS) || !defined(STAGES) || !defined(SPLIT) || \
    !defined(RESIDENT) || !defined(ROUND) || !defined(WAVE) || !defined(SHARED_BYTES) || \
    !defined(LINE_STAGES)
#error "BM BN GROUPS STAGES SPLIT RESIDENT ROUND WAVE SHARED_BYTES LINE_STAGES must be defined"
#endif
#if BM % 8 != 0 || BN % (GROUPS * 64) != 0 || STAGES < 2 || (LINE_STAGES != 0 && LINE_STAGES < 2) || \
    (SPLIT > 1 && (RESIDENT || BM % SPLIT != 0))
#error "BM is of eights, GROUPS divide BN into 64s, SPLIT divides BM and needs RESIDENT=0"
#endif

#define THREADS (GROUPS * 4 * WAVE)  // of the warpgroups
// Registers are handed over between whole warpgroups.
#define COPIERS (GROUPS == 1 ? WAVE : 4 * WAVE)

#include "common/partial_barrier.hip"
#include "common/tensor_copy.hip"
#include "common/warpgroup_matrix.hip"
#include "quantized_gemm/epilogue.hip"
#include "quantized_gemm/fragments.hip"
#if GATED
#error "gates and ups are of other variants"
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

constexpr u32 few_registers = 24;
constexpr u32 many_registers = GROUPS == 2 ? 240 : 160;

constexpr u32 step = 128;                    // k of a stage of A
constexpr u32 products = BN / GROUPS / 64;   // of a warpgroup

typedef PanelTile<BM, step / 8> TileA;
typedef WarpgroupSums<BM> Sums;

// Buffers of weights: none of blocks.
#if SCALES_BESIDE
constexpr u32 line_box = BN * 128, steps_of_box = box_weights / step;
#else
constexpr u32 line_box = 0;
#endif
constexpr u32 lines_start = STAGES * TileA::bytes;
constexpr u32 rings_end = lines_start + LINE_STAGES * line_box;

// C goes through shared memory: the 64 columns of a warpgroup's product, some rows at a time, so that neighbouring
// lanes store whole lines of memory; with SPLIT the whole tile.
constexpr u32 unit = 16 / sizeof(Out);
constexpr u32 stored_rows = BM % 32 == 0 ? 32 : BM % 16 == 0 ? 16 : 8;
constexpr u32 stored_pitch = 64 + unit;
constexpr u32 stored_bytes = SPLIT > 1 ? 0 : stored_rows * stored_pitch * sizeof(Out);  // of a warpgroup
constexpr u32 tile_pitch = BN + 4, tile_bytes = SPLIT > 1 ? BM * tile_pitch * 4 : 0;
constexpr u32 stored_start = rings_end > tile_bytes ? rings_end : tile_bytes;
constexpr u32 barriers_start = stored_start + GROUPS * stored_bytes;
static_assert(barriers_start + (STAGES + LINE_STAGES) * 2 * 8 == SHARED_BYTES, "as tma.cpp has it");

// The barriers of buffers. `filled`: the box is there; `emptied`: all waves that read it are done.
template <u32 count>
struct Ring {
  u8* first;
  u32 index = 0, parity = 0;

  GRETA_DEVICE CountedBarrier filled() const { return barrier_at(first, index); }
  GRETA_DEVICE CountedBarrier emptied() const { return barrier_at(first, count + index); }
  GRETA_DEVICE void next() {
    index = index + 1 == count ? 0 : index + 1;
    parity ^= index == 0 ? 1 : 0;
  }
  // One thread.
  GRETA_DEVICE void open() const {
    for (u32 i = 0; i < count; ++i) {
      barrier_at(first, i).open(1);
      barrier_at(first, count + i).open(GROUPS * 4);
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
#if SCALES_BESIDE
  Ring<LINE_STAGES> lines;
#endif
};

struct Arguments {
  Weights weights;
  const Out* added;
  Out* c;
  u32 m, n, k, tiles_m;
};

struct Tile {
  u32 row, col;  // the first ones
};

// Tiles with the same weights are neighbours. Of many rows, bands of 16 tiles are one after the other, so
// that the second-level cache holds what workgroups read at the same time.
GRETA_DEVICE Tile tile_of(const Arguments& args, u32 index) {
  constexpr u32 band = 16;
  const u32 of_band = band * ((args.n + BN - 1) / BN), first = index / of_band * band;
  const u32 rows = smaller(band, args.tiles_m - first), in_band = index % of_band;
  return {(first + in_band % rows) * BM, in_band / rows * BN};
}

// One thread copies what a tile's steps need, from step `first` on.
GRETA_DEVICE void produce(SharedMemory shared, const TensorMap& map_a, const TensorMap& map_b, Tile tile,
                          u32 first, u32 steps, Rings& rings) {
  GRETA_NO_UNROLL
  for (u32 i = 0; i < steps; ++i) {
    const u32 k = (first + i) * step;
#if SCALES_BESIDE
    if (i % steps_of_box == 0) {
      rings.lines.emptied().wait(rings.lines.parity ^ 1);
      rings.lines.filled().expect(line_box);
      // The map has elements of 16 bits.
      copy_box(shared, lines_start + rings.lines.index * line_box, map_b,
               u32(bytes_of_weights(k)) / 2, tile.col, rings.lines.filled());
      rings.lines.next();
    }
#endif
    rings.rows.emptied().wait(rings.rows.parity ^ 1);
    rings.rows.filled().expect(TileA::bytes);
    GRETA_UNROLL
    for (u32 panel = 0; panel < 2; ++panel) {
      copy_box(shared, rings.rows.index * TileA::bytes + panel * TileA::panel_bytes, map_a,
               k + panel * 64, tile.row, rings.rows.filled());
    }
    rings.rows.next();
  }
}

// The first line of a product that this lane has; the other one is eight further.
GRETA_DEVICE u32 line_of_lane(u32 product) {
  return (warpgroup_index() * products + product) * 64 + wave_index() % 4 * 16 + lane_index() / 4;
}

// Starts the products of `count` fragments of weights with A from k of a step on. `fresh`: sums begin with
// these.
template <bool fresh, u32 count>
GRETA_DEVICE void start_products(SharedMemory shared, u32 start, u32 k, const Fragment (&fragments)[count],
                                 Sums& sums) {
  products_begin();
  GRETA_UNROLL
  for (u32 f = 0; f < count; ++f) {
    const OperandPlace rows =
        operand_place<TileA, true>(shared, start + TileA::template part<true>(0, k + 16 * f));
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

// Stores rows of the warpgroup's buffer, which begin at `row` and `col` of C, `width` elements at a time,
// of which rows of C have a multiple.
template <u32 width>
GRETA_DEVICE void store_rows(const Arguments& args, const Out* buffer, u32 row, u32 col) {
  constexpr u32 of_row = 64 / width, threads = 4 * wave_size;
  for (u32 first = 0; first < stored_rows * of_row; first += threads) {
    const u32 at = first + thread_index() % threads, to_row = row + at / of_row, place = at % of_row * width;
    if (at >= stored_rows * of_row || to_row >= args.m || col + place >= args.n) continue;
    store_pack(args.c + u64(to_row) * args.n + col + place,
               load_pack<width>(buffer + at / of_row * stored_pitch + place));
  }
}

// Stores a warpgroup's sums: a product's 64 rows are columns of C.
GRETA_DEVICE void store_tile(const Arguments& args, Out* buffer, Tile tile,
                             const Sums (&totals)[products]) {
  const u32 lane = lane_index();
  GRETA_UNROLL
  for (u32 product = 0; product < products; ++product) {
    const u32 of_wave = wave_index() % 4 * 16, col = tile.col + line_of_lane(product) - lane / 4 - of_wave;
    GRETA_UNROLL
    for (u32 first = 0; first < BM; first += stored_rows) {
      GRETA_UNROLL
      for (u32 i = 0; i < stored_rows / 2; ++i) {
        const u32 at = first + i / 4 * 8, row = i / 4 * 8 + lane % 4 * 2 + i % 2;
        const u32 in_col = of_wave + lane / 4 + i % 4 / 2 * 8;
        float sum = totals[product].eight[at / 8][i % 4];
#if EPILOGUE != 0
        const u32 of_row = tile.row + first + row, of_col = col + in_col;
        if (of_row < args.m && of_col < args.n) sum += added_to(args.added, of_row, of_col, args.n);
#endif
        buffer[row * stored_pitch + in_col] = narrow<Out>(sum);
      }
      partial_sync<4 * wave_size>(1 + warpgroup_index());
      if (args.n % unit == 0) {
        store_rows<unit>(args, buffer, tile.row + first, col);
      } else if (args.n % 2 == 0) {
        store_rows<2>(args, buffer, tile.row + first, col);
      } else {
        store_rows<1>(args, buffer, tile.row + first, col);
      }
      partial_sync<4 * wave_size>(1 + warpgroup_index());
    }
  }
}

#if SPLIT > 1
// Puts a warpgroup's sums to the tile in shared memory.
GRETA_DEVICE void put_sums(float* sums, const Sums (&totals)[products]) {
  GRETA_UNROLL
  for (u32 product = 0; product < products; ++product) {
    float* const to = sums + lane_index() % 4 * 2 * tile_pitch + line_of_lane(product);
    GRETA_UNROLL
    for (u32 i = 0; i < BM / 2; ++i) {
      to[(i / 4 * 8 + i % 2) * tile_pitch + i % 4 / 2 * 8] = totals[product].eight[i / 4][i % 4];
    }
  }
}

// Adds up the slices of this block's share of the tile's rows, in the order of K, and stores them.
GRETA_DEVICE void add_slices(const Arguments& args, const float* sums, Tile tile) {
  constexpr u32 share = BM / SPLIT, fours = BN / 4;
  const u32 rank = block_z();
  const float* of_slice[SPLIT];
  GRETA_UNROLL
  for (u32 s = 0; s < SPLIT; ++s) of_slice[s] = place_in_block(s, sums);
  GRETA_UNROLL
  for (u32 at = thread_index(); at < share * fours; at += THREADS) {
    const u32 in_row = rank * share + at / fours, in_col = at % fours * 4;
    const u32 row = tile.row + in_row, col = tile.col + in_col;
    if (row >= args.m || col >= args.n) continue;
    Pack<float, 4> slice[SPLIT];
    GRETA_UNROLL
    for (u32 s = 0; s < SPLIT; ++s) slice[s] = load_pack<4>(of_slice[s] + in_row * tile_pitch + in_col);
    float sum[4] = {};
    GRETA_UNROLL
    for (u32 i = 0; i < 4 * SPLIT; ++i) sum[i % 4] += element(slice[i / 4], i % 4);
#if EPILOGUE != 0
    for (u32 i = 0; i < 4 && col + i < args.n; ++i) sum[i] += added_to(args.added, row, col + i, args.n);
#endif
    Out* const to = args.c + u64(row) * args.n + col;
    if (args.n % 4 == 0) {
      store_pack(to, narrow_pack<Out>(sum));
    } else {
      for (u32 i = 0; i < 4 && col + i < args.n; ++i) to[i] = narrow<Out>(sum[i]);
    }
  }
}
#endif

TMA_KERNEL quantized_gemm_tma(const In*, const u8* __restrict__ b, const Scale* __restrict__ scales,
                              const u8* __restrict__ zeros, const Out* __restrict__ added,
                              Out* __restrict__ c, u32 m, u32 n, u32 k,
                              u32 tiles_m, u32 tiles, u32 slice_steps, TENSOR_MAP_PARAMETER map_a
#if SCALES_BESIDE
                              ,
                              TENSOR_MAP_PARAMETER map_b
#endif
) {
#if !SCALES_BESIDE
  const TensorMap& map_b = map_a;  // not used
#endif
  GRETA_PANELS_SHARED(u8, shared);
  const Arguments args = {{b, scales, zeros}, added, c, m, n, k, tiles_m};
  const u32 block = block_index<THREADS>(), steps = (k + step - 1) / step;
  if (block >= tiles) return;  // of the whole cluster
  const u32 blocks = RESIDENT ? gridDim.x : tiles;
  const u32 first = SPLIT > 1 ? smaller(block_z() * slice_steps, steps) : 0;
  const u32 of_slice = SPLIT > 1 ? smaller(slice_steps, steps - first) : steps;
#if SCALES_BESIDE
  Rings rings{{shared + barriers_start}, {shared + barriers_start + 2 * 8 * STAGES}};
#else
  Rings rings{{shared + barriers_start}};
#endif
  const SharedMemory memory = shared_memory(shared);
  const bool copier = wave_index() == THREADS / WAVE && elected();
  if (copier) {
    expect_map(map_a);
    rings.rows.open();
#if SCALES_BESIDE
    expect_map(map_b);
    rings.lines.open();
#endif
    show_barriers();
  }
  block_barrier();
  if (wave_index() >= THREADS / WAVE) {
    if constexpr (COPIERS > WAVE) give_registers<few_registers>();
    if (copier) {
      for (u32 index = block; index < tiles; index += blocks) {
        produce(memory, map_a, map_b, tile_of(args, index), first, of_slice, rings);
      }
    }
#if SPLIT > 1
    __syncwarp();
    cluster_barrier();
    cluster_barrier();
#endif
  } else {
    if constexpr (COPIERS > WAVE) take_registers<many_registers>();
    Ahead ahead = load_ahead(args, tile_of(args, block), first);
    for (u32 index = block; index < tiles; index += blocks) {
      const Tile tile = tile_of(args, index);
      const Tile after = RESIDENT && index + blocks < tiles ? tile_of(args, index + blocks) : tile;
      Sums totals[products] = {};
      consume(args, shared, memory, tile, after, first, of_slice, rings, ahead, totals);
#if SPLIT > 1
      partial_sync<THREADS>(1);  // all are done with the rings, where sums go
      float* const sums = reinterpret_cast<float*>(shared);
      put_sums(sums, totals);
      cluster_barrier();
      add_slices(args, sums, tile);
      cluster_barrier();  // others may still read this block's sums
#else
      store_tile(args, reinterpret_cast<Out*>(shared + stored_start + warpgroup_index() * stored_bytes),
                 tile, totals);
#endif
    }
  }
}
