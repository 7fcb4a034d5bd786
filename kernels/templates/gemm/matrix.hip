// A workgroup computes a BM x BN tile of C on matrix cores, its waves WM x WN parts of that, in
// products of INSTR x INSTR. It walks K in steps of BK: both operands' parts lie in shared memory
// in their own type, in STAGES buffers. With ASYNC, copies for STAGES - 1 steps are under way;
// without, the next step waits in registers. With SPLIT > 1 the workgroup's z picks a slice of K;
// with FOLD=1 the last slice of a tile to arrive adds them all, in the order of K whatever the order
// of arrival, with FOLD=2 the slices' workgroups are a cluster, and each adds its share of the rows;
// else the sums go to the workspace for reduce.hip. With ALIGN_A or ALIGN_B that operand is a copy
// made by align.hip.

#if !defined(BM) || !defined(BN) || !defined(BK) || !defined(WM) || !defined(WN) ||             \
    !defined(INSTR) || !defined(VA) || !defined(VB) || !defined(PAD) || !defined(STAGES) ||     \
    !defined(ASYNC) || !defined(FRAGMENTS) || !defined(SWIZZLE) || !defined(SPLIT) ||           \
    !defined(FOLD) || !defined(WAVE)
#error "BM BN BK WM WN INSTR VA VB PAD STAGES ASYNC FRAGMENTS SWIZZLE SPLIT FOLD and WAVE must be"
#endif
#if !defined(A_ALONG_K) || !defined(B_ALONG_K) || !defined(ALIGN_A) || !defined(ALIGN_B)
#error "{A,B}_ALONG_K and ALIGN_{A,B} must be defined"
#endif

#define THREADS (BM / WM * (BN / WN) * WAVE)

#if BM % WM != 0 || BN % WN != 0 || WM % INSTR != 0 || WN % INSTR != 0 || PAD < 0 || PAD > 1
#error "INSTR divides the waves' tiles, which divide the workgroup's; PAD is 0 or 1"
#endif
#if STAGES < 1 || (ASYNC ? STAGES < 2 : STAGES > 2) || FRAGMENTS < 1 || FRAGMENTS > 2
#error "STAGES is 1 or 2, with ASYNC at least 2; FRAGMENTS is 1 or 2"
#endif
#if SPLIT < 1 || SWIZZLE < 1 || (FOLD && SPLIT == 1)
#error "SPLIT and SWIZZLE are at least 1; FOLD needs slices"
#endif

#include "common/matrix.hip"
#include "gemm/aligned.hip"
#include "gemm/matrix_loader.hip"
#include "gemm/operands.hip"
#include "gemm/tile_order.hip"
#if FOLD == 1
#include "gemm/slices.hip"
#elif FOLD == 2
#include "common/cluster.hip"
#endif

typedef MatrixCore<In, INSTR> Core;
typedef OperandLoader<In, A_ALONG_K, BM, VA> LoaderA;
typedef OperandLoader<In, B_ALONG_K, BN, VB> LoaderB;

static_assert(WAVE == wave_size, "WAVE is the size of a wave");
static_assert(!ASYNC || (GRETA_ASYNC_COPY && !LoaderA::turned && !LoaderB::turned),
              "ASYNC needs asynchronous copies, and tiles that are not turned on the way");
static_assert(!ASYNC || PAD == 0, "the lanes of a wave write one behind the other");

// Products of a wave in m, in n, and along a K step.
constexpr u32 rows = WM / INSTR, columns = WN / INSTR, depths = BK / Core::depth;
static_assert(BK % Core::depth == 0 && (FRAGMENTS == 1 || depths % 2 == 0),
              "BK is a multiple of the products' depth; two sets of fragments take turns");

constexpr u32 stage_bytes = LoaderA::Tile::bytes + LoaderB::Tile::bytes;

// Where the wave's part of the tile starts.
GRETA_DEVICE Position wave_position() {
  const u32 wave = wave_index();
  return {wave / (BN / WN) * WM, wave % (BN / WN) * WN};
}

typedef Core::Sums Sums[rows][columns];

// The workgroup's walk along K.
struct Pipeline {
  LoaderA a;
  LoaderB b;
  SharedMemory shared;
  u32 k_left;  // from the K step to be loaded next to the end
  u32 stage;   // that is multiplied
  Core::Fragment a_fragments[FRAGMENTS][rows], b_fragments[FRAGMENTS][columns];

  // Copies of the next K step are spread over the products of this one, so that neither stands in
  // the other's way; with two sets of fragments, all are under way before the last products.
  static constexpr u32 copies = LoaderA::units + LoaderB::units;
  static constexpr u32 copying_depths = depths > 1 ? depths - 1 : 1;
  static constexpr u32 slots = copying_depths * rows;

#if ASYNC
  // Starts the copies of one slot into a stage: zeros behind the last K step, which spares branches.
  GRETA_DEVICE void copy(u32 slot, u32 to_stage) {
    const u32 to = to_stage * stage_bytes;
    GRETA_UNROLL
    for (u32 i = 0; i < LoaderA::units; ++i) {
      if (i * slots / copies == slot) a.copy(i, shared, to, k_left);
    }
    GRETA_UNROLL
    for (u32 i = 0; i < LoaderB::units; ++i) {
      if ((LoaderA::units + i) * slots / copies == slot) {
        b.copy(i, shared, to + LoaderA::Tile::bytes, k_left);
      }
    }
    if (slot + 1 == slots) next_step();
  }
#else
  // Starts loading the next K step into registers. Gives what was left of K, 0 behind the last step.
  GRETA_DEVICE u32 fetch() {
    const u32 left = k_left;
    if (left > 0) {
      a.fetch(left);
      b.fetch(left);
      next_step();
    }
    return left;
  }
#endif

  GRETA_DEVICE void next_step() {
    a.base += a.step_bytes;
    b.base += b.step_bytes;
    k_left -= smaller(k_left, BK);
  }

  // The stage is complete when this returns, and seen by all. `fetched`: the last fetch()'s answer.
  GRETA_DEVICE void arrive(u32 fetched) {
#if ASYNC
    wait_for_copies<STAGES - 2, copies>();
#else
    if (STAGES == 1) block_barrier();  // the fragments of the step before were read
    if (fetched > 0) {
      if (fetched < BK) {
        a.clear_tail(fetched);
        b.clear_tail(fetched);
      }
      a.put(shared.bytes + stage * stage_bytes);
      b.put(shared.bytes + stage * stage_bytes + LoaderA::Tile::bytes);
    }
#endif
    block_barrier();
  }

  GRETA_DEVICE void begin() {
    stage = 0;
#if ASYNC
    GRETA_UNROLL
    for (u32 s = 0; s + 1 < STAGES; ++s) {
      GRETA_UNROLL
      for (u32 slot = 0; slot < slots; ++slot) copy(slot, s);
      close_copies();
    }
    arrive(0);
#else
    arrive(fetch());
#endif
    if (FRAGMENTS == 2) {
      GRETA_UNROLL
      for (u32 i = 0; i < rows; ++i) read_fragments(0, 0, i);
    }
  }

  // Reads one of `rows` parts of the fragments.
  GRETA_DEVICE void read_fragments(u32 set, u32 depth, u32 part) {
    const Position wave = wave_position();
    const u32 a_start = stage * stage_bytes, b_start = a_start + LoaderA::Tile::bytes;
    GRETA_UNROLL
    for (u32 i = 0; i < rows; ++i) {
      if (i * rows / (rows + columns) != part) continue;
      a_fragments[set][i] = Core::load<Operand::a, LoaderA::tile_along_k, LoaderA::Tile>(
          shared, a_start, wave.row + i * INSTR, depth * Core::depth);
    }
    GRETA_UNROLL
    for (u32 j = 0; j < columns; ++j) {
      if ((rows + j) * rows / (rows + columns) != part) continue;
      b_fragments[set][j] = Core::load<Operand::b, LoaderB::tile_along_k, LoaderB::Tile>(
          shared, b_start, wave.col + j * INSTR, depth * Core::depth);
    }
  }

  GRETA_DEVICE void multiply_row(u32 set, u32 i, Sums& sums) const {
    GRETA_UNROLL
    for (u32 l = 0; l < columns; ++l) {
      const u32 j = i % 2 == 0 ? l : columns - 1 - l;  // to and fro: neighbours share B
      Core::multiply(sums[i][j], a_fragments[set][i], b_fragments[set][j]);
    }
  }

  // With two sets of fragments, one is read while the other is multiplied, across K steps too.
  GRETA_DEVICE void walk(u32 k_length, Sums& sums) {
    k_left = k_length;
    begin();
    for (u32 k = 0; k < k_length; k += BK) {
      const u32 free_stage = stage == 0 ? STAGES - 1 : stage - 1;
      u32 fetched = 0;
      GRETA_UNROLL
      for (u32 depth = 0; depth < depths; ++depth) {
        if (FRAGMENTS == 2 && depth + 1 == depths) finish_step(fetched);
        GRETA_UNROLL
        for (u32 i = 0; FRAGMENTS == 1 && i < rows; ++i) read_fragments(0, depth, i);
#if !ASYNC
        if (depth == 0) fetched = fetch();
#endif
        GRETA_UNROLL
        for (u32 i = 0; i < rows; ++i) {
          if (FRAGMENTS == 2) read_fragments((depth + 1) % 2, (depth + 1) % depths, i);
#if ASYNC
          if (depth < copying_depths) copy(depth * rows + i, free_stage);
#endif
          multiply_row(depth % FRAGMENTS, i, sums);
          keep_order();
        }
      }
      if (FRAGMENTS == 1) finish_step(fetched);
    }
#if ASYNC
    wait_for_copies<0, copies>();  // zeros from behind the last step
#endif
    block_barrier();  // shared memory may be used for something else
  }

  GRETA_DEVICE void finish_step(u32 fetched) {
#if ASYNC
    close_copies();
#endif
    stage = stage + 1 == STAGES ? 0 : stage + 1;
    arrive(fetched);
  }
};

// Hands the wave's sums, four neighbours of a row at a time, to `take`. They go through shared
// memory, a piece of INSTR rows at a time, so that neighbouring lanes get neighbouring columns.
constexpr u32 piece_columns = WN < 64 ? WN : 64;
constexpr u32 piece_pitch = Core::pitch(piece_columns);

template <typename Take>
GRETA_DEVICE void hand_out(float* shared, Position tile, const Sums& sums, Take take) {
  const Position wave = wave_position();
  float* const piece = shared + wave_index() * (INSTR * piece_pitch);
  GRETA_UNROLL
  for (u32 i = 0; i < rows; ++i) {
    GRETA_UNROLL
    for (u32 j = 0; j < WN; j += piece_columns) {
      GRETA_UNROLL
      for (u32 l = 0; l < piece_columns; l += INSTR) {
        Core::store(sums[i][(j + l) / INSTR], piece + l, piece_pitch);
      }
      wave_barrier();
      GRETA_UNROLL
      for (u32 e = 0; e < INSTR * piece_columns / 4; e += wave_size) {
        const u32 row = (e + lane_index()) / (piece_columns / 4);
        const u32 col = (e + lane_index()) % (piece_columns / 4) * 4;
        const Pack<float, 4> pack = load_pack<4>(piece + row * piece_pitch + col);
        const float four[4] = {element(pack, 0), element(pack, 1), element(pack, 2),
                               element(pack, 3)};
        take(tile.row + wave.row + i * INSTR + row, tile.col + wave.col + j + col, four);
      }
      wave_barrier();
    }
  }
}

#if FOLD == 1
// Adds the slices' sums of the whole tile. A thread has several loads in flight.
GRETA_DEVICE void add_slices(const Arguments& args, Position tile) {
  constexpr u32 fours = BM * BN / 4 / THREADS;  // of a thread
  constexpr u32 together = SPLIT >= 16 ? 1 : fours < 16 / SPLIT ? fours : 16 / SPLIT;
  GRETA_NO_UNROLL
  for (u32 e = 0; e < fours; e += together) {
    float part[together][SPLIT][4] = {};
    GRETA_UNROLL
    for (u32 i = 0; i < together; ++i) {
      const u32 at = (e + i) * THREADS + thread_index();
      const u32 row = tile.row + at / (BN / 4), col = tile.col + at % (BN / 4) * 4;
      GRETA_UNROLL
      for (u32 s = 0; s < SPLIT; ++s) {
        if (row < args.m) get_partial4(args, s, row, col, part[i][s]);
      }
    }
    GRETA_UNROLL
    for (u32 i = 0; i < together; ++i) {
      const u32 at = (e + i) * THREADS + thread_index();
      const u32 row = tile.row + at / (BN / 4), col = tile.col + at % (BN / 4) * 4;
      GRETA_UNROLL
      for (u32 s = 1; s < SPLIT; ++s) {
        GRETA_UNROLL
        for (u32 j = 0; j < 4; ++j) part[i][0][j] += part[i][s][j];
      }
      if (row < args.m) put4(args, row, col, part[i][0]);
    }
  }
}
#endif

#if FOLD == 2
#define MATRIX_KERNEL GRETA_CLUSTER_KERNEL(THREADS, SPLIT)

// Adds the sums of the cluster's blocks, which have a slice each; this block has a share of the rows.
GRETA_DEVICE void add_in_cluster(const Arguments& args, float* shared, Position tile,
                                 const Sums& sums) {
  constexpr u32 pitch = Core::pitch(BN), share = BM / SPLIT;
  static_assert(BM % SPLIT == 0, "blocks of a cluster have the same number of rows");
  const Position wave = wave_position();
  GRETA_UNROLL
  for (u32 i = 0; i < rows; ++i) {
    GRETA_UNROLL
    for (u32 j = 0; j < columns; ++j) {
      float* const to = shared + (wave.row + i * INSTR) * pitch + wave.col + j * INSTR;
      Core::store(sums[i][j], to, pitch);
    }
  }
  cluster_barrier();
  GRETA_UNROLL
  for (u32 e = 0; e < share * (BN / 4); e += THREADS) {
    const u32 at = e + thread_index();
    if (share * (BN / 4) % THREADS != 0 && at >= share * (BN / 4)) break;
    const u32 row = block_z() * share + at / (BN / 4), col = at % (BN / 4) * 4;
    float part[SPLIT][4];
    GRETA_UNROLL
    for (u32 s = 0; s < SPLIT; ++s) load_from_block(s, shared + row * pitch + col, part[s]);
    GRETA_UNROLL
    for (u32 s = 1; s < SPLIT; ++s) {
      GRETA_UNROLL
      for (u32 j = 0; j < 4; ++j) part[0][j] += part[s][j];
    }
    if (tile.row + row < args.m) put4(args, tile.row + row, tile.col + col, part[0]);
  }
  cluster_barrier();  // a block's memory is there until all have read it
}
#else
#define MATRIX_KERNEL GRETA_KERNEL(THREADS)
#endif

MATRIX_KERNEL gemm_matrix(GEMM_PARAMETERS) {
  GRETA_DYNAMIC_SHARED(u8, shared);
  const Arguments args = GEMM_ARGUMENTS;
  if (block_index<THREADS>() >= tiles_m * tiles_n) return;
  const Position tile = pick_tile(args);
  const u32 k_begin = smaller(block_z() * slice, k);
  const u32 k_end = smaller(k_begin + slice, k);
  Pipeline pipeline;
  pipeline.shared = shared_memory(shared);
  const u32 a_length = A_ALONG_K ? k : m, b_length = B_ALONG_K ? k : n;
  pipeline.a.start(a, tile.row, m, ALIGN_A ? aligned_stride(a_length) : a_length, k_begin);
  pipeline.b.start(b, tile.col, n, ALIGN_B ? aligned_stride(b_length) : b_length, k_begin);
  Sums sums = {};
  pipeline.walk(k_end - k_begin, sums);

#if FOLD == 2
  add_in_cluster(args, reinterpret_cast<float*>(shared), tile, sums);
#else
  hand_out(reinterpret_cast<float*>(shared), tile, sums,
           [&](u32 row, u32 col, const float(&four)[4]) {
#if SPLIT > 1
             if (row < m) put_partial4(args, block_z(), row, col, four);
#else
             if (row < m) put4(args, row, col, four);
#endif
           });
#endif
#if FOLD == 1
  u32* const counter = counters + block_index<THREADS>();
  block_barrier();
  if (!last_to_arrive(counter, SPLIT, reinterpret_cast<u32*>(shared))) return;
  add_slices(args, tile);
#endif
}
