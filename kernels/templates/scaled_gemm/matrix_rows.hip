// Scaled products of few rows by the matrix cores of waves, bound by reading B. A workgroup has TN x 16
// columns and RT x 16 rows of C. Its WAVES divide k, or with SPLIT its slice of k, among themselves in
// units of 128 k, the k of a block of scales, each with UNROLL units of B in flight, and add their sums
// through shared memory in the end. Operands pass no shared memory.
//
// Which k a lane holds does not matter as long as both operands agree: lanes that share a line load
// neighbouring chunks of 16 bytes of it. On NVIDIA lines of B are the left operand, so that up to eight
// rows of A are one product, and on AMD the right one.
//
// Threads add the sums of each unit with SCALES=2, times their scales, and those of fp8 on NVIDIA, whose
// matrix cores add fp8 with fewer bits than f32 has. With AS_F16 they don't: waves of sm_90 have no
// instruction on fp8, and its assembler replaces that by those on f16 and further additions, so the
// kernel converts both operands by itself. Numbers of microscaling formats (SCALES=3) are always multiplied so
// (mx_rows.hip).

#if !defined(WAVES) || !defined(TN) || !defined(RT) || !defined(UNROLL) || !defined(FEW_ROWS)
#error "WAVES TN RT UNROLL and FEW_ROWS (whether C has at most eight rows) must be defined"
#endif
#if !defined(AS_F16)
#error "AS_F16 must be defined: whether fp8 is multiplied as f16"
#endif
#if WAVES < 1 || TN < 1 || RT < 1 || UNROLL < 1
#error "WAVES, TN, RT and UNROLL are at least 1"
#endif

#include "common/byte_matrix.hip"
#include "scaled_gemm/decode.hip"
#include "scaled_gemm/load_ahead.hip"
#include "scaled_gemm/slices.hip"

#if FORMAT == 4
typedef Int8 Element;
#elif FORMAT % 2 == 0
typedef E4m3 Element;
#else
typedef E5m2 Element;
#endif

// Whether threads add the sums of a unit.
#if SCALES >= 2 || (FORMAT != 4 && !AS_F16 && defined(GRETA_MATRIX_MMA))
#define PROMOTED 1
#else
#define PROMOTED 0
#endif

#define THREADS (WAVES * wave_size)
constexpr u32 unit = 128;  // k

// Lines of B, and of A, that a lane holds of a tile, and the lanes that share a line.
#if defined(GRETA_MATRIX_MMA)
constexpr u32 halves = FEW_ROWS ? 1 : 2;  // of the second one all rows would repeat the last
constexpr u32 lines_b = 2, lines_a = halves, parts = 4;
#else
typedef ByteCore<Element, Number> Core;
constexpr u32 fragment_chunks = sizeof(Core::Fragment) / 16;
constexpr u32 lines_b = 1, lines_a = 1, parts = Core::depth / (16 * fragment_chunks);
#endif
constexpr u32 unit_chunks = unit / (16 * parts);

GRETA_DEVICE u32 line_of_lane() {
#if defined(GRETA_MATRIX_MMA)
  return lane_index() / parts;
#else
  return lane_index() % 16;
#endif
}
GRETA_DEVICE u32 part_of_lane() {
#if defined(GRETA_MATRIX_MMA)
  return lane_index() % parts;
#else
  return parts == 1 ? 0 : lane_index() / 16;
#endif
}

#if SCALES != 3
// A lane's part of a line of a unit.
struct Line {
  Chunk chunk[unit_chunks];
};
typedef Line LineA, LineB;

// The lane's part of a line, from k on. What lies past the end of k is zero. `shared`: whether
// other waves load the same.
template <bool shared, typename Line>
GRETA_DEVICE Line load_line(const u8* line, u32 k, u32 end) {
  Line loaded;
  GRETA_UNROLL
  for (u32 i = 0; i < unit_chunks; ++i) {
    const u32 place = k + part_of_lane() * 16 + i * (16 * parts);
    const bool inside = place < end;
    loaded.chunk[i] = load_ahead<shared, 4>(line + (inside ? place : 0));
    if (!inside) loaded.chunk[i] = {};
  }
  return loaded;
}
#endif

#if defined(GRETA_MATRIX_MMA)
// Products of 16 lines of B and up to 16 rows of A.
struct Sums {
  Number eight[halves][4];
  GRETA_DEVICE Number operator[](u32 i) const { return eight[i / 4][i % 4]; }
};
constexpr u32 count = halves * 4;
constexpr u32 row_scales = halves * 2;  // of the rows of a lane's sums
GRETA_DEVICE u32 row_of_scale(u32 i) { return i / 2 * 8 + lane_index() % 4 * 2 + i % 2; }
GRETA_DEVICE u32 scale_of_sum(u32 i) { return i / 4 * 2 + i % 2; }
GRETA_DEVICE u32 row_of_sum(u32 i) { return row_of_scale(scale_of_sum(i)); }
GRETA_DEVICE u32 column_of_sum(u32 i) { return lane_index() / 4 + i % 4 / 2 * 8; }

// d += a b.
GRETA_DEVICE void multiply(Number (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
#if defined(GRETA_HOST)
#if AS_F16
  greta_host::mma_m16n8k16_f16(d, a, b, d);
#else
  greta_host::mma_m16n8k32<Element>(d, a, b);
#endif
#else
#if AS_F16
#define GRETA_TYPES "m16n8k16.row.col.f32.f16.f16.f32"
#define GRETA_SUM "+f"
#elif FORMAT == 4
#define GRETA_TYPES "m16n8k32.row.col.s32.s8.s8.s32"
#define GRETA_SUM "+r"
#elif FORMAT == 0
#define GRETA_TYPES "m16n8k32.row.col.f32.e4m3.e4m3.f32"
#define GRETA_SUM "+f"
#else
#define GRETA_TYPES "m16n8k32.row.col.f32.e5m2.e5m2.f32"
#define GRETA_SUM "+f"
#endif
  asm volatile("mma.sync.aligned." GRETA_TYPES
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : GRETA_SUM(d[0]), GRETA_SUM(d[1]), GRETA_SUM(d[2]), GRETA_SUM(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

#if SCALES == 3
#include "scaled_gemm/mx_rows.hip"
#else
// What a product takes of a line: two words, or with AS_F16 one word in pairs.
constexpr u32 products = AS_F16 ? 4 * unit_chunks : 2 * unit_chunks;
GRETA_DEVICE void words_of(const Line& line, u32 product, u32 (&words)[2]) {
#if AS_F16
  halves_of_word(line.chunk[product / 4].word[product % 4], words);
#else
  words[0] = line.chunk[product / 2].word[product % 2 * 2];
  words[1] = line.chunk[product / 2].word[product % 2 * 2 + 1];
#endif
}

GRETA_DEVICE void add_products(Sums& sums, const Line (&b)[lines_b], const Line (&a)[lines_a]) {
  GRETA_UNROLL
  for (u32 i = 0; i < products; ++i) {
    u32 first[2], second[2];
    words_of(b[0], i, first);
    words_of(b[1], i, second);
    const u32 left[4] = {first[0], second[0], first[1], second[1]};
    GRETA_UNROLL
    for (u32 half = 0; half < halves; ++half) {
      u32 right[2];
      words_of(a[half], i, right);
      multiply(sums.eight[half], left, right);
    }
  }
}
#endif
#else
typedef Core::Sums Sums;
constexpr u32 count = Core::count;
constexpr u32 row_scales = count;
GRETA_DEVICE u32 row_of_scale(u32 i) { return Core::row(i); }
GRETA_DEVICE u32 scale_of_sum(u32 i) { return i; }
GRETA_DEVICE u32 row_of_sum(u32 i) { return Core::row(i); }
GRETA_DEVICE u32 column_of_sum(u32 i) { return Core::column(i); }

GRETA_DEVICE void add_products(Sums& sums, const Line (&b)[lines_b], const Line (&a)[lines_a]) {
  GRETA_UNROLL
  for (u32 i = 0; i < unit_chunks; i += fragment_chunks) {
    struct Fragments {
      Chunk chunk[fragment_chunks];
    } left, right;
    GRETA_UNROLL
    for (u32 j = 0; j < fragment_chunks; ++j) {
      left.chunk[j] = a[0].chunk[i + j];
      right.chunk[j] = b[0].chunk[i + j];
    }
    Core::multiply(sums, __builtin_bit_cast(Core::Fragment, left),
                   __builtin_bit_cast(Core::Fragment, right));
  }
}
#endif

// A unit of a tile's rows, and with SCALES >= 2 their scales.
struct Rows {
  LineA line[lines_a];
#if SCALES == 3
  u32 scale[row_scales];
#elif SCALES == 2
  float scale[row_scales];
#endif
};

// The scales of a unit of a tile's columns.
struct ColumnScales {
#if SCALES == 3
  u32 word[lines_b];
#elif SCALES == 2
  float block;  // of B, which begins at multiples of 16 columns
#endif
};

// Where the lines begin of which a lane has a part, and the extents.
struct Places {
  const u8* b[TN][lines_b];
  const u8* a[RT][lines_a];
  u32 first_row, first_col, k;
};

GRETA_DEVICE Places places_of(const u8* a, const u8* b, u32 first_row, u32 first_col, u32 m, u32 n,
                              u32 k) {
  Places places;
  places.first_row = first_row;
  places.first_col = first_col;
  places.k = k;
  // Lanes past the last line repeat it.
  GRETA_UNROLL
  for (u32 i = 0; i < TN * lines_b; ++i) {
    const u32 line = first_col + i / lines_b * 16 + i % lines_b * 8 + line_of_lane();
    places.b[i / lines_b][i % lines_b] = b + u64(smaller(line, n - 1)) * (k / of_byte<FORMAT_B>);
  }
  GRETA_UNROLL
  for (u32 i = 0; i < RT * lines_a; ++i) {
    const u32 line = first_row + i / lines_a * 16 + i % lines_a * 8 + line_of_lane();
    places.a[i / lines_a][i % lines_a] = a + u64(smaller(line, m - 1)) * (k / of_byte<FORMAT>);
  }
  return places;
}

// Of the tile of rows r. Units past the end of k have no scales of their own.
GRETA_DEVICE Rows load_rows(const Places& places, const Result& result, u32 r, u32 k, u32 end) {
  Rows rows;
  GRETA_UNROLL
  for (u32 i = 0; i < lines_a; ++i) rows.line[i] = load_line<true, LineA>(places.a[r][i], k, end);
#if SCALES == 3
  GRETA_UNROLL
  for (u32 i = 0; i < row_scales; ++i) {
    const u32 row = smaller(places.first_row + r * 16 + row_of_scale(i), result.m - 1);
    rows.scale[i] = load_scales(result.scales.a, row, k / scale_block, result.scales.blocks);
  }
#elif SCALES == 2
  GRETA_UNROLL
  for (u32 i = 0; i < row_scales; ++i) {
    const u32 row = places.first_row + r * 16 + row_of_scale(i);
    rows.scale[i] = result.scales.of_a(smaller(row, result.m - 1), smaller(k, places.k - 1));
  }
#endif
  return rows;
}

GRETA_DEVICE ColumnScales load_column_scales(const Places& places, const Result& result, u32 t, u32 k) {
  ColumnScales scales;
#if SCALES == 3
  GRETA_UNROLL
  for (u32 i = 0; i < lines_b; ++i) {
    const u32 column = smaller(places.first_col + t * 16 + i * 8 + line_of_lane(), result.n - 1);
    scales.word[i] = load_scales(result.scales.b, column, k / scale_block, result.scales.blocks);
  }
#elif SCALES == 2
  const u32 column = smaller(places.first_col + t * 16, result.n - 1);
  scales.block = result.scales.of_b(column, smaller(k, places.k - 1));
#endif
  return scales;
}

#if PROMOTED
struct TileTotals {
  Total of[count];
  GRETA_DEVICE Total operator[](u32 i) const { return of[i]; }
};
#else
typedef Sums TileTotals;
#endif
typedef TileTotals Totals[RT][TN];

// Adds the products of a unit of a tile.
GRETA_DEVICE void add_unit(const LineB (&b)[lines_b], const Rows& rows, const ColumnScales& of_columns,
                           TileTotals& totals) {
#if SCALES == 3
  GRETA_UNROLL
  for (u32 block = 0; block < blocks; ++block) {
    Sums sums = {};
    add_block(sums, b, rows.line, block);
    GRETA_UNROLL
    for (u32 e = 0; e < count; ++e) {
      const float scale = scale_of_block(rows.scale[scale_of_sum(e)], block) *
                          scale_of_block(of_columns.word[e % 4 / 2], block);
      totals.of[e] = multiply_add(sums[e], scale, totals.of[e]);
    }
  }
#elif PROMOTED
  Sums sums = {};
  add_products(sums, b, rows.line);
  GRETA_UNROLL
  for (u32 e = 0; e < count; ++e) {
#if SCALES == 2
    const float scale = rows.scale[scale_of_sum(e)] * of_columns.block;
    totals.of[e] = multiply_add(float(sums[e]), scale, totals.of[e]);
#else
    totals.of[e] += sums[e];
#endif
  }
#else
  add_products(totals, b, rows.line);
#endif
}

// Adds the products of UNROLL units from k on.
GRETA_DEVICE void add_units(const Places& places, const Result& result, u32 k, u32 end,
                            Totals& totals) {
  LineB b[UNROLL][TN][lines_b];
  GRETA_UNROLL
  for (u32 i = 0; i < UNROLL * TN * lines_b; ++i) {
    const u32 u = i / (TN * lines_b), t = i / lines_b % TN;
    b[u][t][i % lines_b] = load_line<false, LineB>(places.b[t][i % lines_b], k + u * unit, end);
  }
  ColumnScales of_columns[UNROLL][TN];
  GRETA_UNROLL
  for (u32 i = 0; i < UNROLL * TN; ++i) {
    of_columns[i / TN][i % TN] = load_column_scales(places, result, i % TN, k + i / TN * unit);
  }
  Rows next = load_rows(places, result, 0, k, end);
  loads_go_ahead();
  GRETA_UNROLL
  for (u32 u = 0; u < UNROLL; ++u) {
    GRETA_UNROLL
    for (u32 r = 0; r < RT; ++r) {
      const Rows rows = next;
      if (r + 1 < RT) {
        next = load_rows(places, result, r + 1, k + u * unit, end);
      } else if (u + 1 < UNROLL) {
        next = load_rows(places, result, 0, k + (u + 1) * unit, end);
      }
      GRETA_UNROLL
      for (u32 t = 0; t < TN; ++t) add_unit(b[u][t], rows, of_columns[u][t], totals[r][t]);
      loads_stay_behind();
    }
  }
}

// Sums of a wave in shared memory, a row for each of C.
constexpr u32 tile_rows = FEW_ROWS ? 8 : 16, pitch = 20;

GRETA_KERNEL(THREADS)
scaled_gemm_matrix_rows(const u8* GRETA_READ a, const u8* GRETA_READ b,
                        const Scale* GRETA_READ scales_a, const Scale* GRETA_READ scales_b,
                        Out* __restrict__ c, u32 m, u32 n, u32 k, u32 tiles_n SLICE_PARAMETERS) {
  begin_launch();
  GRETA_SHARED(Total, sums, WAVES * 16 * pitch);
  const u32 block = block_index<THREADS>(), tile_row = FEW_ROWS ? 0 : block / tiles_n;
  const u32 first_row = tile_row * (RT * 16), first_col = (block - tile_row * tiles_n) * (TN * 16);
  if (first_row >= m || first_col >= n) return;  // of the whole workgroup
  const Result result = {
      {scales_a, scales_b, (k + scale_block - 1) / scale_block}, c, m, n, SLICES};
  const Places places = places_of(a, b, first_row, first_col, m, n, k);
  const u32 end = result.slices.end(k);

  Totals totals = {};
  for (u32 at = result.slices.begin(k) + wave_index() * (UNROLL * unit); at < end;
       at += WAVES * UNROLL * unit) {
    add_units(places, result, at, end, totals);
  }
  GRETA_UNROLL
  for (u32 i = 0; i < RT * TN; ++i) {
    const u32 r = i / TN, t = i % TN;
    if (i > 0) block_barrier();  // all have read the tile before
    Total* const of_wave = sums + wave_index() * (16 * pitch);
    GRETA_UNROLL
    for (u32 e = 0; e < count; ++e) {
      of_wave[row_of_sum(e) * pitch + column_of_sum(e)] = Total(totals[r][t][e]);
    }
    block_barrier();
    for (u32 e = thread_index(); e < tile_rows * 16; e += THREADS) {
      const u32 row = first_row + r * 16 + e / 16, col = first_col + t * 16 + e % 16;
      if (row >= m || col >= n) continue;
      Total total = 0;
      GRETA_UNROLL
      for (u32 w = 0; w < WAVES; ++w) total += sums[w * (16 * pitch) + e / 16 * pitch + e % 16];
      result.put(row, col, total);
    }
  }
  result.finish<THREADS, (RT - 1) * 16 + tile_rows, TN * 16>(block, first_row, first_col);
}
