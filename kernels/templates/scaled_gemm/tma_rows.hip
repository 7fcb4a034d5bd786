// Scaled products of few rows of fp8 on the matrix cores of warpgroups: lines of B are the rows of their products,
// and BM rows of C the columns, so that no part of an instruction is wasted. Both operands come to shared
// memory in boxes of 128 k, a panel and a block of scales, which one thread of a further wave copies
// (tensor_copy.hip). Of the STAGES buffers, each has a barrier that ends a phase when its boxes are there, and
// one that does when all who read it are done.
//
// GROUPS warpgroups share the BN columns of a workgroup. SPLIT workgroups, a cluster, share k: each reads less
// of A, and adds up the sums of some of the columns. Threads add the sums of each 128 k, with SCALES=2 times
// their scales: matrix cores add fp8 with fewer bits than f32 has.

#if !defined(BM) || !defined(BN) || !defined(GROUPS) || !defined(STAGES) || !defined(SPLIT) || \
    !defined(WAVE) || !defined(SHARED_BYTES)
#error "BM BN GROUPS STAGES SPLIT WAVE SHARED_BYTES must be defined"
#endif
#if BM % 8 != 0 || BN % (GROUPS * 64) != 0 || STAGES < 2 || BN / 16 % SPLIT != 0
#error "BM is of eights, GROUPS divide BN into 64s, SPLIT divides BN into 16s"
#endif

#define THREADS ((GROUPS * 4 + 1) * WAVE)

#include "common/tensor_copy.hip"
#include "common/tile_sums.hip"
#include "common/warpgroup_bytes.hip"
#include "scaled_gemm/numbers.hip"

#if FORMAT == 0
typedef E4m3 Element;
#elif FORMAT == 1
typedef E5m2 Element;
#else
#error "FORMAT is e4m3 or e5m2"
#endif
#if SPLIT > 1
#define ROWS_KERNEL GRETA_CLUSTER_KERNEL(THREADS, SPLIT)
#else
#define ROWS_KERNEL GRETA_KERNEL(THREADS)
#endif

static_assert(WAVE == wave_size, "WAVE is the size of a wave");

constexpr u32 step = 128;                   // k of a stage, which are the bytes of a panel's line
constexpr u32 products = BN / GROUPS / 64;  // of a warpgroup
constexpr u32 eights = BM / 8, waves = GROUPS * 4;

typedef PanelTile<BM, 8> TileA;
typedef PanelTile<BN, 8> TileB;
typedef ByteSums<BM, float> Sums;
typedef TileSums<BN / 16 / SPLIT, SPLIT, eights> Exchange;

constexpr u32 stage_bytes = TileA::bytes + TileB::bytes;
constexpr u32 barriers_start = STAGES * stage_bytes, exchange_start = barriers_start + STAGES * 16;
static_assert(exchange_start + Exchange::bytes == SHARED_BYTES, "as tma_rows.cpp has it");

// The barriers of the buffers, and the buffer that is next.
struct Ring {
  u8* first;
  u32 index = 0, parity = 0;

  GRETA_DEVICE CountedBarrier filled() const { return barrier_at(first, index); }
  GRETA_DEVICE CountedBarrier emptied() const { return barrier_at(first, STAGES + index); }
  GRETA_DEVICE void next() {
    index = index + 1 == STAGES ? 0 : index + 1;
    parity ^= index == 0 ? 1 : 0;
  }
};

// What a workgroup multiplies: rows and columns from these on, and steps of k.
struct Part {
  u32 row, col, first_step, steps;
};

struct Arguments {
  ScalePair scales;
  Out* c;
  u32 m, n, k;
};

// Of a step of the part, in elements of 16 bits, as the maps have them.
GRETA_DEVICE u32 column_of(const Part& part, u32 i) { return (part.first_step + i) * (step / 2); }

// One thread copies the operands of the part's first steps: B's before earlier launches end. Returns
// their number.
GRETA_DEVICE u32 produce_first(SharedMemory shared, const TensorMap& map_a, const TensorMap& map_b,
                               const Part& part, Ring& ring) {
  const u32 steps = smaller(part.steps, STAGES);
  GRETA_NO_UNROLL
  for (u32 i = 0; i < steps; ++i) {
    const Ring at{ring.first, i};
    at.filled().expect(stage_bytes);
    copy_box(shared, i * stage_bytes + TileA::bytes, map_b, column_of(part, i), part.col, at.filled());
  }
  await_earlier_launches();
  GRETA_NO_UNROLL
  for (u32 i = 0; i < steps; ++i, ring.next()) {
    copy_box(shared, i * stage_bytes, map_a, column_of(part, i), part.row, ring.filled());
  }
  return steps;
}

// The same for the steps from `first` on.
GRETA_DEVICE void produce(SharedMemory shared, const TensorMap& map_a, const TensorMap& map_b,
                          const Part& part, u32 first, Ring& ring) {
  GRETA_NO_UNROLL
  for (u32 i = first; i < part.steps; ++i) {
    ring.emptied().wait(ring.parity ^ 1);
    const u32 to = ring.index * stage_bytes;
    ring.filled().expect(stage_bytes);
    copy_box(shared, to + TileA::bytes, map_b, column_of(part, i), part.col, ring.filled());
    copy_box(shared, to, map_a, column_of(part, i), part.row, ring.filled());
    ring.next();
  }
}

// Tiles of 16 columns of C: of product number `product` of this wave, in warpgroup `group`.
GRETA_DEVICE u32 tile_of(u32 group, u32 product) {
  return (group * products + product) * 4 + wave_index() % 4;
}

typedef float Totals[products][eights][4];

// Adds the sums of a step of a product.
GRETA_DEVICE void add_step(const Arguments& args, const Part& part, u32 tile, u32 k, const Sums& sums,
                           float (&total)[eights][4]) {
#if SCALES == 2
  const u32 line = part.col + tile * 16;  // blocks of B begin at multiples of 16
  const float of_b = args.scales.of_b(smaller(line, args.n - 1), k);
#endif
  GRETA_UNROLL
  for (u32 e = 0; e < eights; ++e) {
    GRETA_UNROLL
    for (u32 i = 0; i < 4; ++i) {
#if SCALES == 2
      const u32 row = part.row + e * 8 + lane_index() % 4 * 2 + i % 2;
      const float scale = args.scales.of_a(smaller(row, args.m - 1), k) * of_b;
      total[e][i] = multiply_add(sums.eight[e][i], scale, total[e][i]);
#else
      total[e][i] += sums.eight[e][i];
#endif
    }
  }
}

GRETA_DEVICE void consume(const Arguments& args, SharedMemory shared, const Part& part, Ring ring,
                          Totals& totals) {
  const u32 group = warpgroup_index();
  GRETA_NO_UNROLL
  for (u32 i = 0; i < part.steps; ++i) {
    ring.filled().wait(ring.parity);
    const u32 start = ring.index * stage_bytes;
    const OperandPlace lines = byte_place<TileB>(shared, start + TileA::bytes, group * products * 64, 0);
    const OperandPlace rows = byte_place<TileA>(shared, start, 0, 0);
    Sums sums[products];
    products_begin();
    GRETA_UNROLL
    for (u32 product = 0; product < products; ++product) {
      GRETA_UNROLL
      for (u32 k = 0; k < step; k += 32) {
        const OperandPlace b = further(lines, TileB::template part<true>(product * 64, k / 2));
        const OperandPlace a = further(rows, TileA::template part<true>(0, k / 2));
        if (k == 0) {
          multiply_bytes<false>(Element(), sums[product], b, a);
        } else {
          multiply_bytes<true>(Element(), sums[product], b, a);
        }
      }
    }
    close_products();
    wait_for_products<0>();
    GRETA_UNROLL
    for (u32 product = 0; product < products; ++product) claim_byte_sums(sums[product]);
    wave_barrier();
    if (lane_index() == 0) ring.emptied().arrive();
    ring.next();
    GRETA_UNROLL
    for (u32 product = 0; product < products; ++product) {
      add_step(args, part, tile_of(group, product), (part.first_step + i) * step, sums[product], totals[product]);
    }
  }
}

// Stores a lane's sums of eight rows of a tile of columns.
GRETA_DEVICE void store_eight(const Arguments& args, u32 first_row, u32 first_col, const float (&sum)[4]) {
  GRETA_UNROLL
  for (u32 i = 0; i < 4; ++i) {
    const u32 row = first_row + lane_index() % 4 * 2 + i % 2;
    const u32 col = first_col + lane_index() / 4 + i / 2 * 8;
    if (row >= args.m || col >= args.n) continue;
    const float scale = SCALES == 2 ? 1.0f : args.scales.of_a(row, 0) * args.scales.of_b(col, 0);
    args.c[u64(row) * args.n + col] = narrow<Out>(sum[i] * scale);
  }
}

ROWS_KERNEL scaled_gemm_tma_rows(const u8*, const u8*, const float* GRETA_READ scales_a,
                                 const float* GRETA_READ scales_b, Out* __restrict__ c, u32 m,
                                 u32 n, u32 k, u32 tiles_n, u32 tiles, TENSOR_MAP_PARAMETER map_a,
                                 TENSOR_MAP_PARAMETER map_b) {
  begin_launch_early();
  GRETA_PANELS_SHARED(u8, memory);
  const u32 block = block_index<THREADS>();
  if (block >= tiles) return;  // of the whole cluster
  const Arguments args = {{scales_a, scales_b, (k + scale_block - 1) / scale_block}, c, m, n, k};
  const u32 rank = SPLIT > 1 ? block_z() : 0, steps = (k + step - 1) / step;
  const u32 first = rank * steps / SPLIT;
  const Part part = {block / tiles_n * BM, block % tiles_n * BN, first, (rank + 1) * steps / SPLIT - first};
  Ring ring{memory + barriers_start};
  const Exchange exchange{memory + exchange_start};
  const SharedMemory shared = shared_memory(memory);
  const bool copier = wave_index() == waves && elected();
  u32 copied = 0;
  if (copier) {
    expect_map(map_b);
    expect_map(map_a);
    for (u32 stage = 0; stage < STAGES; ++stage) {
      barrier_at(memory + barriers_start, stage).open(1);
      barrier_at(memory + barriers_start, STAGES + stage).open(waves);
    }
    show_barriers();
    copied = produce_first(shared, map_a, map_b, part, ring);
  }
  await_earlier_launches();
  wave_barrier();
  exchange.open();
  block_barrier();
  if (wave_index() == waves) {
    if (copier) produce(shared, map_a, map_b, part, copied, ring);
    wave_barrier();
    exchange.await_others();
    if (SPLIT == 1) exchange.receive();
    return;
  }
  Totals totals = {};
  consume(args, shared, part, ring, totals);
  exchange.await_others();
  GRETA_UNROLL
  for (u32 product = 0; product < products; ++product) {
    exchange.send(tile_of(warpgroup_index(), product), rank, totals[product]);
  }
  exchange.receive();
  exchange.add_up(wave_index(), waves, [&](u32 tile, u32 eight, const float(&sum)[4]) {
    store_eight(args, part.row + eight * 8, part.col + tile * 16, sum);
  });
}
