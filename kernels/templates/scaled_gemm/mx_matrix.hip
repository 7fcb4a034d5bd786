// Scaled products of numbers of microscaling formats on the matrix cores of waves. A workgroup computes a
// tile of BM x BN of C in steps of k. Its threads load a step of both operands and its scales while they
// multiply the step before, and store it to shared memory, where BUFFERS steps lie. A wave has WM x WN of
// the tile.
//
// CORES says what the matrix cores multiply (kernels/templates/scaled_gemm/cores.hpp):
//   0  the numbers as they are, 128 k at a time, each lane's part with the scale of 32 k (gfx950)
//   1  numbers of eight bits: e2m1 becomes fp8 as it is stored to shared memory
//   2  16-bit numbers, which all are stored as
// With 1 and 2 threads add the sums of each 32 k to totals, times both scales.

#if !defined(BM) || !defined(BN) || !defined(WM) || !defined(WN) || !defined(BUFFERS) || \
    !defined(CORES)
#error "BM BN WM WN BUFFERS CORES must be defined"
#endif
#if BM % WM != 0 || BN % WN != 0 || WM % 16 != 0 || WN % 16 != 0 || BUFFERS < 1 || BUFFERS > 2 || \
    CORES < 0 || CORES > 2
#error "WM divides BM and WN BN, both in multiples of 16; BUFFERS are 1 or 2, CORES 0 to 2"
#endif

#include "scaled_gemm/mx_cores.hip"

#if SCALES != 3
#error "formats are microscaling ones"
#endif

constexpr u32 blocks = step / scale_block;  // of a step, each with a scale
// Scales of one block are so far from those of the next one: with CORES=0 lanes read those of several.
constexpr u32 pitch = BM + BN + (CORES == 0 ? 16 : 0);
constexpr u32 waves_n = BN / WN;
#define THREADS (BM / WM * (BN / WN) * wave_size)
typedef StoredTile<FORMAT, BM> TileA;
typedef StoredTile<FORMAT_B, BN> TileB;
constexpr u32 stage_bytes = TileA::bytes + TileB::bytes;
constexpr u32 rows_of_wave = WM / 16, columns_of_wave = WN / 16;

// What a thread loads of an operand's step. `lines` of the tile.
template <u32 format, u32 lines>
struct Loaded {
  static constexpr u32 numbers = 16 * of_byte<format>, of_line = step / numbers;
  static constexpr u32 units = (lines * of_line + THREADS - 1) / THREADS;
  Words<16> unit[units];

  // row_of: the row of a line of the tile. What lies past the end of k is zero.
  template <typename RowOf>
  GRETA_DEVICE void load(const u8* operand, const RowOf& row_of, u32 k, u32 end) {
    GRETA_UNROLL
    for (u32 u = 0; u < units; ++u) {
      const u32 at = u * THREADS + thread_index(), place = k + at % of_line * numbers;
      unit[u] = {};
      if (place >= end) continue;
      const u64 first = u64(row_of(at / of_line)) * end + place;
      unit[u] = load_words<16>(operand + first / of_byte<format>);
    }
  }
  GRETA_DEVICE void store(u8* tile) const {
    GRETA_UNROLL
    for (u32 u = 0; u < units; ++u) {
      const u32 at = u * THREADS + thread_index();
      if (lines * of_line % THREADS != 0 && at >= lines * of_line) continue;
      StoredTile<format, lines>::store(tile, at / of_line, at % of_line, unit[u]);
    }
  }
};

// The same of scales. `first`: the first of them in the table of a step, where all lines of the tiles have
// their scales of one block side by side.
template <u32 lines, u32 first>
struct LoadedScales {
  static constexpr u32 units = (lines * blocks + THREADS - 1) / THREADS;
  Scale unit[units];

  // Those past the end of k are of zeros: the last one stands for them.
  template <typename RowOf>
  GRETA_DEVICE void load(const Scale* scales, const RowOf& row_of, u32 block, u32 end) {
    GRETA_UNROLL
    for (u32 u = 0; u < units; ++u) {
      const u32 at = u * THREADS + thread_index();
      unit[u] = scales[u64(row_of(at / blocks)) * end + smaller(block + at % blocks, end - 1)];
    }
  }
  GRETA_DEVICE void store(StoredScale* table) const {
    GRETA_UNROLL
    for (u32 u = 0; u < units; ++u) {
      const u32 at = u * THREADS + thread_index();
      if (lines * blocks % THREADS != 0 && at >= lines * blocks) continue;
      table[at % blocks * pitch + first + at / blocks] = stored_scale(unit[u]);
    }
  }
};

typedef float Totals[rows_of_wave][columns_of_wave][Place::count];

#if CORES == 0
typedef Sums4 Sums[rows_of_wave][columns_of_wave];

// Adds the products of a step. The wave's part begins at this row and column of the tile.
GRETA_DEVICE void multiply_stage(const u8* stage, const StoredScale* table, u32 row, u32 column,
                                 Sums& sums) {
  const u32 lane = lane_index(), line = lane % 16;
  const StoredScale* const own = table + lane / 16 * pitch + line;  // of this lane's 32 k
  ScaledOperand b[columns_of_wave];
  GRETA_UNROLL
  for (u32 j = 0; j < columns_of_wave; ++j) {
    b[j].load<TileB>(stage + TileA::bytes, column + j * 16 + line);
    b[j].scale = own[BM + column + j * 16];
  }
  GRETA_UNROLL
  for (u32 i = 0; i < rows_of_wave; ++i) {
    ScaledOperand a;
    a.load<TileA>(stage, row + i * 16 + line);
    a.scale = own[row + i * 16];
    GRETA_UNROLL
    for (u32 j = 0; j < columns_of_wave; ++j) multiply_scaled(sums[i][j], a, b[j]);
  }
}
#else
// The same, added to totals.
GRETA_DEVICE void multiply_stage(SharedMemory shared, u32 start, const StoredScale* table, u32 row,
                                 u32 column, Totals& totals) {
  constexpr u32 parts = scale_block / Core::depth;
  GRETA_NO_UNROLL
  for (u32 block = 0; block < blocks; ++block) {
    const StoredScale* const scales = table + block * pitch;
    Core::Fragment b[columns_of_wave][parts];
    GRETA_UNROLL
    for (u32 j = 0; j < columns_of_wave * parts; ++j) {
      b[j / parts][j % parts] = Core::load<Operand::b, TileB::Tile>(
          shared, start + TileA::bytes, column + j / parts * 16,
          block * scale_block + j % parts * Core::depth);
    }
    GRETA_UNROLL
    for (u32 i = 0; i < rows_of_wave; ++i) {
      Core::Fragment a[parts];
      GRETA_UNROLL
      for (u32 p = 0; p < parts; ++p) {
        a[p] = Core::load<Operand::a, TileA::Tile>(
            shared, start, row + i * 16, block * scale_block + p * Core::depth);
      }
      float of_row[Place::count];
      GRETA_UNROLL
      for (u32 e = 0; e < Place::count; ++e) of_row[e] = scales[row + i * 16 + Place::row(e)];
      GRETA_UNROLL
      for (u32 j = 0; j < columns_of_wave; ++j) {
        Core::Sums sums = {};
        GRETA_UNROLL
        for (u32 p = 0; p < parts; ++p) Core::multiply(sums, a[p], b[j][p]);
        GRETA_UNROLL
        for (u32 e = 0; e < Place::count; ++e) {
          const float scale = of_row[e] * scales[BM + column + j * 16 + Place::column(e)];
          totals[i][j][e] = multiply_add(sum_of(sums, e), scale, totals[i][j][e]);
        }
      }
    }
  }
}
#endif

GRETA_KERNEL(THREADS)
scaled_gemm_mx_matrix(const u8* GRETA_READ a, const u8* GRETA_READ b,
                      const Scale* GRETA_READ scales_a, const Scale* GRETA_READ scales_b,
                      Out* __restrict__ c, u32 m, u32 n, u32 k, u32 tiles_n) {
  begin_launch();
  GRETA_DYNAMIC_SHARED(u8, bytes);
  const u32 group = block_index<THREADS>();
  const u32 first_row = group / tiles_n * BM, first_col = group % tiles_n * BN;
  if (first_row >= m) return;  // of the whole workgroup
  const u32 wave = wave_index(), wave_row = wave / waves_n * WM, wave_col = wave % waves_n * WN;
  const auto row_of_a = [&](u32 line) { return smaller(first_row + line, m - 1); };
  const auto line_of_b = [&](u32 line) { return smaller(first_col + line, n - 1); };
  StoredScale* const tables = reinterpret_cast<StoredScale*>(bytes + BUFFERS * stage_bytes);

#if CORES == 0
  Sums totals = {};
#else
  Totals totals = {};
  const SharedMemory shared = shared_memory(bytes);
#endif
  Loaded<FORMAT, BM> of_a;
  Loaded<FORMAT_B, BN> of_b;
  LoadedScales<BM, 0> scales_of_a;
  LoadedScales<BN, BM> scales_of_b;
  const auto load = [&](u32 at) {
    of_a.load(a, row_of_a, at, k);
    of_b.load(b, line_of_b, at, k);
    scales_of_a.load(scales_a, row_of_a, at / scale_block, k / scale_block);
    scales_of_b.load(scales_b, line_of_b, at / scale_block, k / scale_block);
  };
  load(0);
  for (u32 at = 0, buffer = 0; at < k; at += step) {
    const u32 start = BUFFERS == 1 ? 0 : buffer * stage_bytes;
    StoredScale* const table = tables + (BUFFERS == 1 ? 0 : buffer * blocks * pitch);
    if (BUFFERS == 1 && at > 0) block_barrier();  // all have read the step before
    of_a.store(bytes + start);
    of_b.store(bytes + start + TileA::bytes);
    scales_of_a.store(table);
    scales_of_b.store(table);
    block_barrier();
    if (at + step < k) load(at + step);
#if CORES == 0
    multiply_stage(bytes + start, table, wave_row, wave_col, totals);
#else
    multiply_stage(shared, start, table, wave_row, wave_col, totals);
#endif
    buffer ^= 1;
  }
  GRETA_UNROLL
  for (u32 i = 0; i < rows_of_wave * columns_of_wave; ++i) {
    const u32 in_row = i / columns_of_wave, in_column = i % columns_of_wave;
    GRETA_UNROLL
    for (u32 e = 0; e < Place::count; ++e) {
      const u32 to_row = first_row + wave_row + in_row * 16 + Place::row(e);
      const u32 to_col = first_col + wave_col + in_column * 16 + Place::column(e);
      if (to_row >= m || to_col >= n) continue;
      c[u64(to_row) * n + to_col] = narrow<Out>(totals[in_row][in_column][e]);
    }
  }
}
