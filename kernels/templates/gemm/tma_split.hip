// f32 by three products of TF32 on the matrix cores of warpgroups. A workgroup computes a BM x BN tile
// of C: warpgroups multiply (split_tile.hip), and a further one feeds them. For every K step one of its
// threads copies a box of each operand to one of STAGES buffers (tensor_copy.hip), and all of them
// make the low parts of the operand that products read from shared memory, in two further buffers.
// Everybody waits at counted barriers only for what they need. SPLIT and FOLD are as in matrix.hip.

#if !defined(BM) || !defined(BN) || !defined(BK) || !defined(PIECE) || !defined(AHEAD) ||      \
    !defined(PROMOTE) || !defined(ROUNDED) || !defined(STAGES) || !defined(SWIZZLE) ||         \
    !defined(WALK) || !defined(SPLIT) || !defined(FOLD)
#error "BM BN BK PIECE AHEAD PROMOTE ROUNDED STAGES SWIZZLE WALK SPLIT FOLD are undefined"
#endif
#if !defined(WAVE) || !defined(SHARED_BYTES) || !defined(A_ALONG_K) || !defined(B_ALONG_K)
#error "WAVE, SHARED_BYTES and {A,B}_ALONG_K must be defined"
#endif
#if STAGES < 2 || FOLD < 0 || FOLD > 1 || (FOLD && SPLIT == 1)
#error "STAGES are at least 2, FOLD is 0 or 1 and needs SPLIT"
#endif

#define SWAPPED (!B_ALONG_K)      // R, which goes through registers, is B
#define ROWS (SWAPPED ? BN : BM)  // of R in the tile, 64 for each warpgroup
#define SPAN (SWAPPED ? BM : BN)  // of S, which products read from shared memory
#define GROUPS (ROWS / 64)
#define PIECES (SPAN / PIECE)

#define THREADS (GROUPS * 4 * WAVE)  // of the warpgroups that multiply
#define FEEDERS (4 * WAVE)

#include "common/partial_barrier.hip"
#include "common/tensor_copy.hip"
#include "gemm/groups.hip"
#include "gemm/operands.hip"
#include "gemm/tile_order.hip"
#include "gemm/mapped_tile.hip"
#include "gemm/split_tile.hip"

#if IN_F16 || IN_BF16
#error "inputs are f32"
#endif

// Where the warpgroups that multiply meet.
GRETA_DEVICE void team_barrier() { partial_sync<THREADS>(1); }
#define SUM_COLUMNS (HAS_RESIDUAL && STORE_VEC == 1 ? 32 : 64)
#include "gemm/matrix_sums.hip"

static_assert(WAVE == wave_size, "WAVE is the size of a wave");

// Registers of a thread that copies and splits, and of the others; a single warpgroup has enough.
constexpr u32 few_registers = 56;
constexpr u32 many_registers = GROUPS == 2 ? 224 : 152;
static_assert(GROUPS == 1 || few_registers + GROUPS * many_registers <=
                                 (GROUPS + 1) * registers_at_launch<THREADS + FEEDERS>(),
              "a warpgroup would wait for registers for ever");

typedef MappedTile<A_ALONG_K, BM> MappedA;
typedef MappedTile<B_ALONG_K, BN> MappedB;
static_assert(sizeof(In) == 4 && MappedA::Tile::bytes + MappedB::Tile::bytes ==
                                     TileS::bytes + TileR::bytes,
              "both describe the same tiles");

// Of shared memory: STAGES of both operands, and two low parts of S; sums in their place; barriers.
constexpr u32 stage_bytes = MappedA::Tile::bytes + MappedB::Tile::bytes;
constexpr u32 start_s = SWAPPED ? 0 : MappedA::Tile::bytes;  // in a stage
constexpr u32 start_r = SWAPPED ? MappedA::Tile::bytes : 0;
constexpr u32 lows = 2, lows_start = STAGES * stage_bytes;
constexpr u32 tiles_bytes = lows_start + lows * TileS::bytes;
constexpr u32 barriers_start = (sums_bytes() > tiles_bytes ? sums_bytes() : tiles_bytes);
constexpr u32 barriers = STAGES + 2 * lows;
static_assert(barriers_start + barriers * 8 == SHARED_BYTES, "as SplitKernel::shared_bytes() has it");

// A place in a ring of buffers.
template <u32 count>
struct Ring {
  u32 index = 0, parity = 0;

  GRETA_DEVICE void next() {
    index = index + 1 == count ? 0 : index + 1;
    parity ^= index == 0 ? 1 : 0;
  }
};

// Barriers. `filled`: both operands are there; `split`: S's low parts are there; `used`: all products
// of these parts, and so of their step, are done.
struct Barriers {
  u8* first;

  GRETA_DEVICE CountedBarrier at(u32 i) const { return barrier_at(first, i); }
  GRETA_DEVICE CountedBarrier filled(u32 stage) const { return at(stage); }
  GRETA_DEVICE CountedBarrier split(u32 low) const { return at(STAGES + low); }
  GRETA_DEVICE CountedBarrier used(u32 low) const { return at(STAGES + lows + low); }

  // One thread.
  GRETA_DEVICE void open() const {
    for (u32 stage = 0; stage < STAGES; ++stage) filled(stage).open(1);
    for (u32 low = 0; low < lows; ++low) {
      split(low).open(FEEDERS / WAVE);
      used(low).open(THREADS / WAVE);
    }
    show_barriers();
  }
};

// Where a thread is in both rings.
struct Step {
  Ring<STAGES> stage;
  Ring<lows> low;

  GRETA_DEVICE void next() {
    stage.next();
    low.next();
  }
  GRETA_DEVICE u32 start() const { return stage.index * stage_bytes; }
  GRETA_DEVICE u32 low_start() const { return lows_start + low.index * TileS::bytes; }
};

// The thread that copies the operands of one K step after the other.
struct Copier {
  SharedMemory shared;
  Barriers barriers;
  const TensorMap &map_a, &map_b;
  u32 line_a, line_b;  // the first lines of A and B
  Position tile;
  u32 k, left;  // the next step's first k; the number of steps that are not copied yet
  Ring<STAGES> at;

  // The buffer is free.
  GRETA_DEVICE void copy() {
    if (left == 0) return;
    const CountedBarrier filled = barriers.filled(at.index);
    filled.expect(stage_bytes);
    const u32 to = at.index * stage_bytes;
    MappedA::copy(shared, to, map_a, tile.row + (A_ALONG_K ? line_a : 0),
                  k + (A_ALONG_K ? 0 : line_a), filled);
    MappedB::copy(shared, to + MappedA::Tile::bytes, map_b, tile.col + (B_ALONG_K ? line_b : 0),
                  k + (B_ALONG_K ? 0 : line_b), filled);
    at.next();
    k += BK;
    --left;
  }
};

// The warpgroup that feeds the others: its thread `copies` has the copier. When a buffer of low parts
// is used, the step's operands are so as well, and others are copied over them.
GRETA_DEVICE void feed_steps(Copier& copier, bool copies, u32 steps) {
  const SharedMemory shared = copier.shared;
  const Barriers barriers = copier.barriers;
  if (copies) {
    GRETA_NO_UNROLL
    for (u32 stage = 0; stage < STAGES; ++stage) copier.copy();
  }
  Step at;
  GRETA_NO_UNROLL
  for (u32 step = 0; step < steps; ++step) {
    barriers.used(at.low.index).wait(at.low.parity ^ 1);
    if (copies && step >= lows) copier.copy();
    wave_barrier();
    barriers.filled(at.stage.index).wait(at.stage.parity);
    split_tile<FEEDERS>(shared, at.start() + start_s, at.low_start(), thread_index() - THREADS);
    show_to_products();
    wave_barrier();
    if (lane_index() == 0) barriers.split(at.low.index).arrive();
    at.next();
  }
}

// What a warpgroup has beside its whole sums.
struct Multiplier {
  SharedMemory shared;
  Barriers barriers;
  Step at;
  Values values;
  Parts parts;
  PieceSums sums[1 + AHEAD];

  // Waits for the step's values of R.
  GRETA_DEVICE void load() {
    barriers.filled(at.stage.index).wait(at.stage.parity);
    load_values(shared, at.start() + start_r, values);
  }

  // The products of one step; `more`: the next step's values are loaded while the last ones run.
  template <bool add, bool whole>
  GRETA_DEVICE void multiply(Sums& all, bool more) {
    split_values(values, parts);
    const Step now = at;
    barriers.split(now.low.index).wait(now.low.parity);
    at.next();
    GRETA_UNROLL
    for (u32 piece = 0; piece < PIECES; ++piece) {
      PieceSums& own = sums[AHEAD ? piece % 2 : 0];
      start_piece<add>(shared, now.start() + start_s, now.low_start(), piece, parts, own);
      if (AHEAD && piece > 0) {
        wait_for_products<1>();
        promote(all, piece - 1, sums[AHEAD ? (piece - 1) % 2 : 0]);
      }
      if (piece == PIECES - 1 && more) load();
      if (!AHEAD || piece == PIECES - 1) {
        wait_for_products<0>();
        if (whole) promote(all, piece, own);
      }
    }
    release(now);
  }

  // All products of a step are done.
  GRETA_DEVICE void release(const Step& done) {
    wave_barrier();
    if (lane_index() == 0) barriers.used(done.low.index).arrive();
  }

  GRETA_DEVICE void walk(u32 steps, Sums& all) {
    load();
#if PROMOTE == 1
    GRETA_NO_UNROLL
    for (u32 step = 1; step < steps; ++step) multiply<false, true>(all, true);
    multiply<false, true>(all, false);
#else
    u32 left = steps;
    GRETA_NO_UNROLL
    for (; left > PROMOTE; left -= PROMOTE) {
      multiply<false, false>(all, true);
      GRETA_NO_UNROLL
      for (u32 step = 2; step < PROMOTE; ++step) multiply<true, false>(all, true);
      multiply<true, true>(all, true);
    }
    multiply<false, false>(all, left > 1);
    GRETA_NO_UNROLL
    for (; left > 1; --left) multiply<true, false>(all, left > 2);
    promote(all, 0, sums[0]);
#endif
  }
};

extern "C" __global__ void __launch_bounds__(THREADS + FEEDERS, 1)
    GEMM_ENTRY(tma_split)(GEMM_PARAMETERS, TENSOR_MAP_PARAMETER map_a, TENSOR_MAP_PARAMETER map_b) {
  begin_launch();
  GRETA_PANELS_SHARED(u8, shared);
  const Arguments all = GEMM_ARGUMENTS;
  if (block_index<THREADS + FEEDERS>() >= tiles_m * tiles_n) return;
  const Position place = tile_at<WALK == 1>(all, block_index<THREADS + FEEDERS>());
  const Group group = find_group<BM>(all, place.row);
  const Position tile = {group.row, place.col * BN};
  const Barriers barriers{shared + barriers_start};
  const SharedMemory tiles = shared_memory(shared);
  const u32 k_begin = block_z() * slice, steps = steps_of(all, k_begin);
  const u32 wave = wave_index();
  const bool copies = wave == THREADS / WAVE && elected();
  if (copies) {
    expect_map(map_a);
    expect_map(map_b);
    barriers.open();
  }
  block_barrier();
  if (wave >= THREADS / WAVE) {
    if constexpr (GROUPS > 1) give_registers<few_registers>();
    const u32 line_a = first_line_a(all, group), line_b = first_line_b(all, group);
    Copier copier{tiles, barriers, map_a, map_b, line_a, line_b, tile, k_begin, steps};
    feed_steps(copier, copies, steps);
  } else {
    if constexpr (GROUPS > 1) take_registers<many_registers>();
    Sums sums = {};
    Multiplier multiplier{tiles, barriers};
    multiplier.walk(steps, sums);
    team_barrier();  // all are done with the tiles, where sums go
    put_tile(of_group(all, group), shared, tile, sums);
  }
}
