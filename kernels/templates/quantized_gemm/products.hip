// Products of tiles of 16 rows of A and 16 lines of quantised weights by matrix cores, in units of weights
// that share a scale: of 128 here, of fewer in matrix_segments.hip. Lanes multiply the integers of weights, which A's type represents
// exactly, and scale a unit's sums.
//
// Which k a lane holds does not matter as long as both operands agree: a lane has whole chunks of 32
// weights of its lines, and reads the same k of rows of A. On NVIDIA the weights are the left operand
// and on AMD the right one, so that what a lane scales has the scale of a line that it holds.
#pragma once

#if !defined(WAVES) || !defined(TN) || !defined(RT)
#error "WAVES TN RT must be defined"
#endif
#if !defined(FEW_ROWS)
#error "FEW_ROWS must be defined: whether C has at most eight rows, and there are no groups of them"
#endif
#if WAVES < 1 || TN < 1 || RT < 1
#error "WAVES, TN and RT are at least 1"
#endif

#include "common/matrix.hip"
#include "quantized_gemm/epilogue.hip"
#include "quantized_gemm/groups.hip"
#include "quantized_gemm/pairs.hip"
#include "quantized_gemm/prologue.hip"

#define THREADS (WAVES * wave_size)

typedef MatrixCore<In, 16> Core;

// Lines of an operand that a lane holds, eight apart, and the lanes that share a line.
#if defined(GRETA_MATRIX_MMA)
constexpr u32 lane_lines = 2, parts = 4;
#elif defined(GRETA_MATRIX_MFMA)
constexpr u32 lane_lines = 1, parts = 4;
#elif defined(GRETA_MATRIX_WMMA12)
constexpr u32 lane_lines = 1, parts = 2;
#else
constexpr u32 lane_lines = 1, parts = 1;
#endif
constexpr u32 unit_weights = 128, lane_chunks = 4 / parts;

GRETA_DEVICE u32 line_of_lane() {
#if defined(GRETA_MATRIX_MMA)
  return lane_index() / 4;
#else
  return lane_index() % 16;
#endif
}
GRETA_DEVICE u32 part_of_lane() {
#if defined(GRETA_MATRIX_MMA)
  return lane_index() % 4;
#else
  return parts == 1 ? 0 : lane_index() / 16;
#endif
}

// Weights from a lane's first one in a unit to its chunk, which may be one of a later unit.
GRETA_DEVICE constexpr u32 place_of_chunk(u32 chunk) {
  return chunk / lane_chunks * unit_weights + chunk % lane_chunks * CHUNK_WEIGHTS;
}

#if defined(GRETA_MATRIX_MMA)
#if !defined(EIGHTS)  // of columns of a product: with few rows, the second one would repeat the first
#define EIGHTS (FEW_ROWS ? 1 : 2)
#endif
constexpr u32 halves = EIGHTS, row_lines = halves;

// Products of a tile; a column is a row of A.
struct Sums {
  float column[halves][4];
};

GRETA_DEVICE void multiply(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#if defined(GRETA_HOST)
  const u32 b[2] = {b0, b1};
  if constexpr (same_type<In, f16>) {
    greta_host::mma_m16n8k16_f16(d, a, b, d);
  } else {
    greta_host::mma_m16n8k16_bf16(d, a, b, d);
  }
#else
#if IN_F16
#define GRETA_TYPES "f32.f16.f16.f32"
#else
#define GRETA_TYPES "f32.bf16.bf16.f32"
#endif
  asm volatile("mma.sync.aligned.m16n8k16.row.col." GRETA_TYPES
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#undef GRETA_TYPES
#endif
}

// Adds the products of `count` eights of k of a lane's lines.
template <u32 count>
GRETA_DEVICE void add_products(Sums& sums, const Eight (&weights)[lane_lines][count],
                               const Eight (&rows)[row_lines][count]) {
  GRETA_UNROLL
  for (u32 step = 0; step < 2 * count; ++step) {  // of four k of each lane
    const u32 e = step / 2, s = step % 2 * 2;
    const u32 a[4] = {weights[0][e].word[s], weights[1][e].word[s], weights[0][e].word[s + 1],
                      weights[1][e].word[s + 1]};
    GRETA_UNROLL
    for (u32 half = 0; half < halves; ++half) {
      multiply(sums.column[half], a, rows[half][e].word[s], rows[half][e].word[s + 1]);
    }
  }
}

GRETA_DEVICE void add_scaled(Sums& total, const Sums& part, const float (&scale)[lane_lines]) {
  GRETA_UNROLL
  for (u32 i = 0; i < 4 * halves; ++i) {
    float& to = total.column[i / 4][i % 4];
    to = multiply_add(scale[i % 4 / 2], part.column[i / 4][i % 4], to);
  }
}

GRETA_DEVICE void store(const Sums& sums, float* to, u32 pitch) {
  GRETA_UNROLL
  for (u32 i = 0; i < 2 * halves; ++i) {
    float* const at =
        to + (lane_index() / 4 + i % 2 * 8) * pitch + i / 2 * 8 + lane_index() % 4 * 2;
    const float* const pair = sums.column[i / 2] + i % 2 * 2;
    store_words<8>(at, {{bits_of(pair[0]), bits_of(pair[1])}});
  }
}
#else
constexpr u32 row_lines = 1;
typedef Core::Sums Sums;

template <u32 count>
GRETA_DEVICE void add_products(Sums& sums, const Eight (&weights)[lane_lines][count],
                               const Eight (&rows)[row_lines][count]) {
  static_assert(count % Core::lane_chunks == 0, "whole instructions");
  GRETA_UNROLL
  for (u32 e = 0; e < count; e += Core::lane_chunks) {
    Core::Fragment a, b;
    GRETA_UNROLL
    for (u32 i = 0; i < 4 * Core::lane_chunks; ++i) {
      a.chunk[i / 4].word[i % 4] = rows[0][e + i / 4].word[i % 4];
      b.chunk[i / 4].word[i % 4] = weights[0][e + i / 4].word[i % 4];
    }
    Core::multiply(sums, a, b);
  }
}

GRETA_DEVICE void add_scaled(Sums& total, const Sums& part, const float (&scale)[lane_lines]) {
  GRETA_UNROLL
  for (u32 i = 0; i < sizeof(Sums) / 4; ++i) total[i] = multiply_add(scale[0], part[i], total[i]);
}

GRETA_DEVICE void store(const Sums& sums, float* to, u32 pitch) { Core::store(sums, to, pitch); }
#endif

#if FORMAT < 2
// Without zero points of groups; int8 is used as unsigned numbers.
constexpr u32 implied_zero = FORMAT == 0 ? 8 : 128;

// The weights of a unit that a lane has of each tile's lines.
struct Unit {
  Integers integers[TN][lane_lines][lane_chunks];
  Scale scale[TN][lane_lines];
  u32 zero[TN][lane_lines];
};

// Elements of A that a lane multiplies with a chunk of each line of weights.
struct Rows {
  Eight eight[row_lines][4];
};

GRETA_DEVICE Rows load_rows(const In* const (&row)[row_lines], u32 k) {
  Rows rows;
  GRETA_UNROLL
  for (u32 i = 0; i < row_lines * 4; ++i) {
    rows.eight[i / 4][i % 4] = load_elements(row[i / 4] + k + i % 4 * 8);
  }
  return rows;
}

// Adds the products of chunk c of a unit with A. rows_of(r) returns A's part of the tile r of rows.
template <typename RowsOf>
GRETA_DEVICE void add_chunk(const Unit& unit, u32 c, Sums (&part)[RT][TN], RowsOf rows_of) {
  Eight weights[TN][lane_lines][4];
  GRETA_UNROLL
  for (u32 i = 0; i < TN * lane_lines * 4; ++i) {
    const u32 t = i / (lane_lines * 4), of_lane = i / 4 % lane_lines;
    weights[t][of_lane][i % 4] =
        eight_weights(unit.integers[t][of_lane][c], i % 4, unit.zero[t][of_lane]);
  }
  GRETA_UNROLL
  for (u32 r = 0; r < RT; ++r) {
    const Rows rows = rows_of(r);
    GRETA_UNROLL
    for (u32 t = 0; t < TN; ++t) add_products(part[r][t], weights[t], rows.eight);
  }
}

// Adds the sums of a unit, scaled.
GRETA_DEVICE void add_unit(const Unit& unit, const Sums (&part)[RT][TN], Sums (&total)[RT][TN]) {
  GRETA_UNROLL
  for (u32 t = 0; t < TN; ++t) {
    float scale[lane_lines];
    GRETA_UNROLL
    for (u32 i = 0; i < lane_lines; ++i) scale[i] = to_float(unit.scale[t][i]);
    GRETA_UNROLL
    for (u32 r = 0; r < RT; ++r) add_scaled(total[r][t], part[r][t], scale);
  }
}

#endif

// Sums of a wave in shared memory: on NVIDIA a row for each column of C.
#if defined(GRETA_MATRIX_MMA)
constexpr u32 sums_pitch = FEW_ROWS ? 8 : Core::pitch(16);
#else
constexpr u32 sums_pitch = Core::pitch(16);
#endif
constexpr u32 floats_of_sums = 16 * sums_pitch;

// The sum of all waves of an element of a tile.
GRETA_DEVICE float sum_of_waves(const float* sums, u32 in_row, u32 in_col) {
#if defined(GRETA_MATRIX_MMA)
  const u32 place = in_col * sums_pitch + in_row;
#else
  const u32 place = in_row * sums_pitch + in_col;
#endif
  float sum = 0.0f;
  GRETA_UNROLL
  for (u32 w = 0; w < WAVES; ++w) sum += sums[w * floats_of_sums + place];
  return sum;
}

// Stores a tile of the product as C. sum_of(row, column) returns the sum of an element of the tile.
template <typename SumOf>
GRETA_DEVICE void store_tile(SumOf sum_of, Out* c, const Out* added, u32 first_row, u32 first_col,
                             u32 m, u32 n) {
  constexpr u32 columns = GATED ? 8 : 16;
  for (u32 e = thread_index(); e < 16 * columns; e += THREADS) {
    const u32 in_row = e / columns, in_col = e % columns, row = first_row + in_row;
    const u32 col = (GATED ? first_col / 2 : first_col) + in_col;
    if (row >= m || col >= n) continue;
#if GATED
    put_gated(c, row, col, n, sum_of(in_row, 2 * in_col), sum_of(in_row, 2 * in_col + 1));
#else
    put(c, added, row, col, n, sum_of(in_row, in_col));
#endif
  }
}

// Does so with all tiles of a workgroup, through `sums` of each wave.
GRETA_DEVICE void store_tiles(const Sums (&total)[RT][TN], float* sums, Out* c, const Out* added,
                              u32 first_row, u32 first_col, u32 m, u32 n) {
  GRETA_UNROLL
  for (u32 i = 0; i < RT * TN; ++i) {
    const u32 r = i / TN, t = i % TN;
    if (i > 0) block_barrier();  // all have read the tile before
    store(total[r][t], sums + wave_index() * floats_of_sums, sums_pitch);
    block_barrier();
    store_tile([&](u32 row, u32 col) { return sum_of_waves(sums, row, col); }, c, added,
               first_row + r * 16, first_col + t * 16, m, n);
  }
}
