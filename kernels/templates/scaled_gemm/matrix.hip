// Scaled products of numbers of eight bits on the matrix cores of waves. A workgroup computes a tile of
// BM x BN of C in steps of 128 k, the k of a block of scales. Its threads load a step of both operands
// while they multiply the step before, and store it to shared memory, where BUFFERS steps lie. A wave
// has WM x WN of the tile.
//
// NVIDIA's matrix cores add fp8 with fewer bits than f32 has, so there threads add the sums of each
// 128 k; with SCALES=2 they do so everywhere, with scales.

#if !defined(BM) || !defined(BN) || !defined(WM) || !defined(WN) || !defined(BUFFERS)
#error "BM BN WM WN BUFFERS must be defined"
#endif
#if BM % WM != 0 || BN % WN != 0 || WM % 16 != 0 || WN % 16 != 0 || BUFFERS < 1 || BUFFERS > 2
#error "WM divides BM and WN BN, both in multiples of 16; BUFFERS are 1 or 2"
#endif

#include "common/byte_matrix.hip"
#include "scaled_gemm/groups.hip"

#if GATE && WN % 32 != 0
#error "with gates, WN is a multiple of 32"
#endif

#if FORMAT == 4
typedef Int8 Element;
#elif FORMAT % 2 == 0
typedef E4m3 Element;
#else
typedef E5m2 Element;
#endif

// Whether threads add the sums of 128 k.
#if SCALES == 2 || (FORMAT != 4 && defined(GRETA_MATRIX_MMA))
#define PROMOTED 1
#else
#define PROMOTED 0
#endif

constexpr u32 step = 128, line_chunks = step / 16;
constexpr u32 waves_n = BN / WN;
#define THREADS (BM / WM * (BN / WN) * wave_size)
typedef ByteCore<Element, Number> Core;
typedef SharedTile<BM, line_chunks, 0, false> TileA;
typedef SharedTile<BN, line_chunks, 0, false> TileB;
constexpr u32 stage_bytes = TileA::bytes + TileB::bytes;
constexpr u32 rows_of_wave = WM / 16, columns_of_wave = WN / 16;

// What a thread loads of an operand's step.
template <u32 lines>
struct Loaded {
  static constexpr u32 units = (lines * line_chunks + THREADS - 1) / THREADS;
  Chunk chunk[units];

  // row_of: the row of a line of the tile. What lies past the end of k is zero.
  template <typename RowOf>
  GRETA_DEVICE void load(const u8* operand, const RowOf& row_of, u32 k, u32 end) {
    GRETA_UNROLL
    for (u32 u = 0; u < units; ++u) {
      const u32 at = u * THREADS + thread_index(), place = k + at % line_chunks * 16;
      chunk[u] = {};
      if (place >= end) continue;
      chunk[u] = load_words<16>(operand + u64(row_of(at / line_chunks)) * end + place);
    }
  }
  template <typename Tile>
  GRETA_DEVICE void store(u8* tile) const {
    GRETA_UNROLL
    for (u32 u = 0; u < units; ++u) {
      const u32 at = u * THREADS + thread_index();
      if (lines * line_chunks % THREADS != 0 && at >= lines * line_chunks) continue;
      store_words<16>(tile + Tile::offset(at / line_chunks, at % line_chunks), chunk[u]);
    }
  }
};

typedef Core::Sums Sums[rows_of_wave][columns_of_wave];

// Adds the products of a step at byte `start` of shared memory; the wave's part begins at this row and
// column of the tile.
GRETA_DEVICE void multiply_step_of_tile(SharedMemory shared, u32 start, u32 row, u32 column,
                                        Sums& sums) {
  GRETA_UNROLL
  for (u32 k = 0; k < step; k += Core::depth) {
    Core::Fragment a[rows_of_wave], b[columns_of_wave];
    GRETA_UNROLL
    for (u32 i = 0; i < rows_of_wave; ++i) {
      a[i] = Core::load<Operand::a, TileA>(shared, start, row + i * 16, k);
    }
    GRETA_UNROLL
    for (u32 j = 0; j < columns_of_wave; ++j) {
      b[j] = Core::load<Operand::b, TileB>(shared, start + TileA::bytes, column + j * 16, k);
    }
    GRETA_UNROLL
    for (u32 i = 0; i < rows_of_wave; ++i) {
      GRETA_UNROLL
      for (u32 j = 0; j < columns_of_wave; ++j) Core::multiply(sums[i][j], a[i], b[j]);
    }
  }
}

#if PROMOTED
typedef float Totals[rows_of_wave][columns_of_wave][Core::count];

// `row`, `column`: where the wave's part of C begins.
GRETA_DEVICE void add_step(const ScalePair& scales, u32 row, u32 column, u32 m, u32 n, u32 k,
                           const Sums& sums, Totals& totals) {
  GRETA_UNROLL
  for (u32 i = 0; i < rows_of_wave; ++i) {
    float of_row[Core::count];
    GRETA_UNROLL
    for (u32 e = 0; e < Core::count; ++e) {
      of_row[e] = SCALES == 2 ? scales.of_a(smaller(row + i * 16 + Core::row(e), m - 1), k) : 1.0f;
    }
    GRETA_UNROLL
    for (u32 j = 0; j < columns_of_wave; ++j) {
      // Blocks of B begin at multiples of 16 columns.
      const float of_column =
          SCALES == 2 ? scales.of_b(line_of_column<WN>(column + j * 16, n), k) : 1.0f;
      GRETA_UNROLL
      for (u32 e = 0; e < Core::count; ++e) {
        totals[i][j][e] =
            multiply_add(float(sums[i][j][e]), of_row[e] * of_column, totals[i][j][e]);
      }
    }
  }
}
#endif

GRETA_KERNEL(THREADS)
SCALED_ENTRY(matrix)
(const u8* GRETA_READ a, const u8* GRETA_READ b, const float* GRETA_READ scales_a,
 const float* GRETA_READ scales_b, Out* __restrict__ c, u32 m, u32 n, u32 k,
 u32 tiles_n GROUP_PARAMETERS) {
  begin_launch();
  GRETA_DYNAMIC_SHARED(u8, bytes);
  const u32 block = block_index<THREADS>();
  const Group group = group_of_line<BM>(ALL_ROWS, block / tiles_n);
  const u32 first_row = group.row, first_col = block % tiles_n * BN;
  if (first_row >= group.rows) return;  // of the whole workgroup
  a += u64(group.first) * k;
  b += start_of_b(group, n, k);
  c += u64(group.first) * n;
  m = group.rows;
  const u32 wave = wave_index(), wave_row = wave / waves_n * WM, wave_col = wave % waves_n * WN;
  const u32 row = first_row + wave_row, column = first_col + wave_col;
  const ScalePair scales =
      scales_of_group({scales_a, scales_b, (k + scale_block - 1) / scale_block}, group, n);
  const SharedMemory shared = shared_memory(bytes);
  const auto row_of_a = [&](u32 line) { return smaller(first_row + line, m - 1); };
  const auto line_of_b = [&](u32 line) { return line_of_column<WN>(first_col + line, n); };

  Sums sums = {};
#if PROMOTED
  Totals totals = {};
#endif
  Loaded<BM> of_a;
  Loaded<BN> of_b;
  of_a.load(a, row_of_a, 0, k);
  of_b.load(b, line_of_b, 0, k);
  for (u32 at = 0, buffer = 0; at < k; at += step) {
    const u32 start = BUFFERS == 1 ? 0 : buffer * stage_bytes;
    if (BUFFERS == 1 && at > 0) block_barrier();  // all have read the step before
    of_a.store<TileA>(bytes + start);
    of_b.store<TileB>(bytes + start + TileA::bytes);
    block_barrier();
    if (at + step < k) {
      of_a.load(a, row_of_a, at + step, k);
      of_b.load(b, line_of_b, at + step, k);
    }
    multiply_step_of_tile(shared, start, wave_row, wave_col, sums);
#if PROMOTED
    add_step(scales, row, column, m, n, at, sums, totals);
    GRETA_UNROLL
    for (u32 i = 0; i < rows_of_wave * columns_of_wave; ++i) {
      sums[i / columns_of_wave][i % columns_of_wave] = Core::Sums{};
    }
#endif
    buffer ^= 1;
  }
  // A scaled sum.
  const auto value_at = [&](u32 i, u32 j, u32 e) {
#if PROMOTED
    const float value = totals[i][j][e];
#else
    const float value = float(sums[i][j][e]);
#endif
    if (SCALES == 2) return value;
    const u32 line = line_of_column<WN>(column + j * 16 + Core::column(e), n);
    return value * (scales.of_a(row + i * 16 + Core::row(e), 0) * scales.of_b(line, 0));
  };
  constexpr u32 stored = columns_of_wave / (GATE ? 2 : 1);
  GRETA_UNROLL
  for (u32 i = 0; i < rows_of_wave * stored; ++i) {
    const u32 in_row = i / stored, in_column = i % stored;
    GRETA_UNROLL
    for (u32 e = 0; e < Core::count; ++e) {
      const u32 to_row = row + in_row * 16 + Core::row(e);
      const u32 to_col = column_of_c<WN>(column + in_column * 16 + Core::column(e));
      if (to_row >= m || to_col >= n) continue;
#if GATE
      const float value =
          gated_value(value_at(in_row, in_column, e), value_at(in_row, in_column + stored, e));
#else
      const float value = value_at(in_row, in_column, e);
#endif
      c[u64(to_row) * n + to_col] = narrow<Out>(value);
    }
  }
}
