// What waves need to walk along K, which multiply WM x WN parts of the tile from their registers.
#pragma once

#include "gemm/matrix_loader.hip"
#include "gemm/operands.hip"
#include "gemm/tile_order.hip"
#if DIRECT
#include "gemm/fragment_loader.hip"
#endif

#if FRAGMENTS < 1 || FRAGMENTS > 2 || STAGES < 1 || (ASYNC ? STAGES < 2 : STAGES > 2)
#error "STAGES is 1 or 2, with ASYNC at least 2; FRAGMENTS is 1 or 2"
#endif

#if !defined(PRIORITY)
#define PRIORITY 0
#endif
#if !defined(INTERLEAVE)
#define INTERLEAVE 0
#endif
#if !defined(PINGPONG)
#define PINGPONG 0
#endif

// 1: B's fragments go from its panels in device memory to registers, and not through shared memory
// (fragment_loader.hip).
#if !defined(DIRECT)
#define DIRECT 0
#endif
#if DIRECT && (!B_PANELS || STAGES > 2 || PINGPONG)
#error "DIRECT needs B in panels, STAGES of at most 2 and no PINGPONG"
#endif

#define MATRIX_SHARED GRETA_DYNAMIC_SHARED

typedef MatrixCore<In, INSTR> Core;
typedef OperandLoader<In, A_ALONG_K, BM, VA> LoaderA;
#if DIRECT
typedef NoLoader LoaderB;
#else
typedef OperandLoader<In, B_ALONG_K, BN, VB, GATED, B_PANELS> LoaderB;
#endif

static_assert(!ASYNC || (GRETA_ASYNC_COPY && !LoaderA::turned && !LoaderB::turned),
              "ASYNC needs asynchronous copies, and tiles that are not turned on the way");
static_assert(!ASYNC || PAD == 0, "the lanes of a wave write one behind the other");

// Products of a wave in m, in n, and along a K step.
constexpr u32 rows = WM / INSTR, columns = WN / INSTR, depths = BK / Core::depth;
static_assert(BK % Core::depth == 0 && (FRAGMENTS == 1 || depths % 2 == 0),
              "BK is a multiple of the products' depth; two sets of fragments take turns");

constexpr u32 stage_bytes = LoaderA::Tile::bytes + LoaderB::Tile::bytes;

// Where the operands' parts of a stage start. Where the offsets of instructions reach them, all of
// A comes first, so that one register reaches as many stages as possible.
#if defined(GRETA_MATRIX_MMA)
constexpr u32 a_stride = stage_bytes, b_stride = stage_bytes, b_first = LoaderA::Tile::bytes;
#else
constexpr u32 a_stride = LoaderA::Tile::bytes, b_stride = LoaderB::Tile::bytes;
constexpr u32 b_first = STAGES * a_stride;
#endif
GRETA_DEVICE constexpr u32 a_start(u32 stage) {
  return stage * a_stride;
}
GRETA_DEVICE constexpr u32 b_start(u32 stage) {
  return b_first + stage * b_stride;
}

// Where the wave's part of the tile starts.
GRETA_DEVICE Position wave_position() {
  const u32 wave = wave_index();
  return {wave / (BN / WN) * WM, wave % (BN / WN) * WN};
}

typedef Core::Sums Sums[rows][columns];

// A wave's sums are handed out in pieces of a product's rows.
constexpr u32 pieces = rows, piece_rows = INSTR, piece_width = WN;

// Where piece i of the wave's part starts in the tile.
GRETA_DEVICE Position piece_position(u32 i) {
  const Position wave = wave_position();
  return {wave.row + i * INSTR, wave.col};
}

// `width` columns of piece i, from column `first` on, as rows `pitch` floats apart.
template <u32 width>
GRETA_DEVICE void store_piece(const Sums& sums, u32 i, u32 first, float* to, u32 pitch) {
  GRETA_UNROLL
  for (u32 l = 0; l < width; l += INSTR) Core::store(sums[i][(first + l) / INSTR], to + l, pitch);
}
GRETA_DEVICE constexpr u32 sums_pitch(u32 width) {
  return Core::pitch(width);
}

#if DIRECT
typedef FragmentLoader<In, INSTR, columns, GATED> DirectLoader;
#endif

// What the walk along K has in registers.
struct Operands {
  LoaderA a;
  LoaderB b;
  SharedMemory shared;
  Core::Fragment a_fragments[FRAGMENTS][rows];
  typedef Core::Fragment Columns[columns];
#if DIRECT
  DirectLoader direct;
  DirectLoader::Fragments b_steps[2];  // of K steps, which take turns
#else
  Columns b_fragments[FRAGMENTS];
#endif

  // B's fragments of a depth of a K step.
  GRETA_DEVICE const Columns& columns_of(u32 step, u32 depth) const {
#if DIRECT
    return b_steps[step % 2][depth];
#else
    return b_fragments[depth % FRAGMENTS];
#endif
  }

  // Copies of the next K step are spread over the products of this one, so that neither stands in
  // the other's way; with two sets of fragments, all are under way before the last products.
  static constexpr u32 copies = LoaderA::units + LoaderB::units;
  static constexpr u32 copying_depths = depths > 1 ? depths - 1 : 1;
  static constexpr u32 slots = copying_depths * rows;

  GRETA_DEVICE void multiply_row(u32 set, const Columns& b, u32 i, Sums& sums) const {
    GRETA_UNROLL
    for (u32 l = 0; l < columns; ++l) {
      const u32 j = i % 2 == 0 ? l : columns - 1 - l;  // to and fro: neighbours share B
      Core::multiply(sums[i][j], a_fragments[set][i], b[j]);
    }
  }
};
