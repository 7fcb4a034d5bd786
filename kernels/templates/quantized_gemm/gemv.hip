// Products with quantised weights, bound by reading these once. A workgroup has COLS x TN columns of
// ROWS rows of C. Its threads divide K among LANES = THREADS / COLS, each with UNROLL chunks of 32
// weights of each of its TN columns in flight, and add their sums in the end. With NORM, A is multiplied by
// its weight as it is loaded, and its squares are one more sum, by which the others are scaled in the end.
//
// Neighbouring threads divide K. With ACROSS=1, for words of AWQ and GPTQ, they have neighbouring columns, so that they
// load neighbouring words; and with SPLIT > 1 workgroups share K, too.

#if !defined(ROWS) || !defined(THREADS) || !defined(COLS) || !defined(TN) || !defined(UNROLL) || !defined(ACROSS)
#error "ROWS THREADS COLS TN UNROLL ACROSS must be defined"
#endif
#if ROWS < 1 || TN < 1 || UNROLL < 1 || THREADS % COLS != 0
#error "ROWS, TN and UNROLL are at least 1; COLS divides THREADS"
#endif
#if !ACROSS && SPLIT > 1
#error "SPLIT > 1 needs ACROSS=1"
#endif

#include "common/reduce.hip"
#include "quantized_gemm/columns.hip"
#include "quantized_gemm/gemv_sums.hip"

#if GATED && TN % 2 != 0
#error "a thread has the gate and the up of a column"
#endif

#define LANES (THREADS / COLS)

// Eight neighbours of A.
GRETA_DEVICE void load_a8(const In* from, float (&a)[8]) {
  constexpr int width = sizeof(In) == 4 ? 4 : 8;
  GRETA_UNROLL
  for (int i = 0; i < 8; i += width) {
    const auto pack = load_pack<width>(from + i);
    GRETA_UNROLL
    for (int j = 0; j < width; ++j) a[i + j] = element(pack, j);
  }
}

// ROWS rows from a chunk on, which are `stride` apart, and the norm's weight. `last` is the last row that A
// has.
struct RowChunks {
  const In* a;
  u64 stride;
  u32 last;
#if NORM
  const In* weight;
#endif

  GRETA_DEVICE RowChunks from(u32 first) const {
#if NORM
    return {a + first, stride, last, weight + first};
#else
    return {a + first, stride, last};
#endif
  }
};

// Adds the products of a chunk of each column with `rows`, and with NORM the squares of these.
GRETA_DEVICE void add_products(const RowChunks& rows, const Columns& chunk,
                               float (&sum)[ROWS][TN], float (&squares)[ROWS]) {
#if NORM
  float some[ROWS] = {};
#endif
  // f32 has all integers times a scale of f16; those times one of bf16 may be too large. Of several rows,
  // these take fewer registers than a chunk's sums.
  constexpr bool scaled = ACROSS && ROWS >= 4 && !same_type<Scale, bf16>;
  constexpr u32 eights = CHUNK_WEIGHTS / 8, of_segment = eights / SEGMENTS;
  GRETA_UNROLL
  for (u32 segment = 0; segment < SEGMENTS; ++segment) {
    float part[ROWS][TN] = {};
    float(&to)[ROWS][TN] = scaled ? sum : part;
    GRETA_UNROLL
    for (u32 e = segment * of_segment; e < (segment + 1) * of_segment; ++e) {
      float weight[TN][8];
      GRETA_UNROLL
      for (u32 t = 0; t < TN; ++t) {
        chunk.eight(t, e, weight[t]);
        GRETA_UNROLL
        for (u32 i = 0; scaled && i < 8; ++i) weight[t][i] *= chunk.scale(t, segment);
      }
#if NORM
      float of_norm[8];
      load_a8(rows.weight + 8 * e, of_norm);
#endif
      GRETA_UNROLL
      for (u32 row = 0; row < ROWS; ++row) {
        float x[8];
        load_a8(rows.a + smaller(row, rows.last) * rows.stride + 8 * e, x);
#if NORM
        GRETA_UNROLL
        for (u32 i = 0; i < 8; ++i) {
          some[row] = multiply_add(x[i], x[i], some[row]);
          x[i] *= of_norm[i];
        }
#endif
        GRETA_UNROLL
        for (u32 t = 0; t < TN; ++t) {
          GRETA_UNROLL
          for (u32 i = 0; i < 8; ++i) to[row][t] = multiply_add(x[i], weight[t][i], to[row][t]);
        }
      }
    }
    GRETA_UNROLL
    for (u32 row = 0; !scaled && row < ROWS; ++row) {
      GRETA_UNROLL
      for (u32 t = 0; t < TN; ++t) {
        sum[row][t] = multiply_add(chunk.scale(t, segment), part[row][t], sum[row][t]);
      }
    }
  }
#if NORM
  GRETA_UNROLL
  for (u32 row = 0; row < ROWS; ++row) squares[row] += some[row];
#endif
}

// Adds the products of each LANES-th chunk from `begin` to `end` of columns from `first_col` on.
GRETA_DEVICE void add_chunks(const RowChunks& rows, const Weights& weights, u32 first_col, u32 begin, u32 end,
                             u32 n, u32 k, float (&sum)[ROWS][TN], float (&squares)[ROWS]) {
  for (u32 at = begin; at < end; at += LANES * UNROLL) {
    Columns chunk[UNROLL];
    // Threads past the last chunk repeat it.
    GRETA_UNROLL
    for (u32 u = 0; u < UNROLL; ++u) chunk[u].load(weights, first_col, smaller(at + u * LANES, end - 1), n, k);
    await_earlier_launches();
    loads_go_ahead();
    GRETA_UNROLL
    for (u32 u = 0; u < UNROLL; ++u) {
      if (at + u * LANES < end)
        add_products(rows.from((at + u * LANES) * CHUNK_WEIGHTS), chunk[u], sum, squares);
    }
  }
}

#if ACROSS
struct Product {
  Out* c;
  const Out* added;
  u32 n, k;
  float epsilon;  // of the norm
};

// Stores what the sums of a tile are worth.
GRETA_DEVICE void put_tile(const float* met, const Product& to, u32 first_row, u32 last_row, u32 tile_col) {
  for (u32 e = thread_index(); e < ROWS * COLS * TN / runs; e += THREADS) {
    const u32 row = e / (COLS * TN / runs), at = e % (COLS * TN / runs) * runs;
    const u32 col = (tile_col + at) / runs;
    if (row > last_row || col >= to.n) continue;
    const float* const sums = met + row * sums_of_row * COLS + at / TN;
#if NORM
    const float factor = norm_factor(sums[TN * COLS], to.k, to.epsilon);
#else
    constexpr float factor = 1.0f;
#endif
    const float total = sums[at % TN * COLS] * factor;
#if GATED
    put_gated(to.c, first_row + row, col, to.n, total, sums[(at % TN + 1) * COLS] * factor);
#else
    put(to.c, to.added, first_row + row, col, to.n, total);
#endif
  }
}
#endif

GRETA_KERNEL(THREADS)
quantized_gemm_gemv(const In* GRETA_READ a, const u8* GRETA_READ b, const Scale* GRETA_READ scales,
                    const u8* GRETA_READ zeros, const Out* GRETA_READ added, Out* __restrict__ c,
                    u32 m, u32 n, u32 k, u32 tiles_n NORM_PARAMETERS SLICE_PARAMETERS) {
  begin_launch_alone();
#if ACROSS
  GRETA_SHARED(float, wave_sums, parts * tile_sums);
  const u32 lane = thread_index() / COLS, column = thread_index() % COLS;
#else
  GRETA_SHARED(float, wave_sums, ROWS * (TN + NORM) * (THREADS / wave_size + 1));
  const u32 lane = thread_index() % LANES, column = thread_index() / LANES;
#endif
  const u32 block = block_index<THREADS>();
  const u32 first_row = block / tiles_n * ROWS;
  const u32 tile_col = block % tiles_n * (COLS * TN), first_col = tile_col + column * TN;
  if (first_row >= m) return;  // of the whole workgroup
  const u32 last_row = smaller(ROWS - 1, m - 1 - first_row);
  const In* const a_first = a + u64(first_row) * k;
  const u32 chunks = k / CHUNK_WEIGHTS;
#if SPLIT > 1
  const u32 begin = chunks * block_z() / SPLIT, end = chunks * (block_z() + 1) / SPLIT;
#else
  const u32 begin = 0, end = chunks;
#endif

  float sum[ROWS][TN] = {}, squares[ROWS] = {};
#if NORM
  const RowChunks rows = {a_first, k, last_row, weight};
#else
  const RowChunks rows = {a_first, k, last_row};
#endif
  add_chunks(rows, {b, scales, zeros}, first_col, begin + lane, end, n, k, sum, squares);
  await_earlier_launches();  // of threads without a chunk, too
  let_next_launch_begin();
#if ACROSS
  GRETA_UNROLL
  for (u32 row = 0; row < ROWS; ++row) meet_in_wave(sum[row], squares[row], row, wave_sums);
  if (!meet(SLICES, block, tiles_n * ((m + ROWS - 1) / ROWS), wave_sums)) return;
#if NORM
  put_tile(wave_sums, {c, added, n, k, epsilon}, first_row, last_row, tile_col);
#else
  put_tile(wave_sums, {c, added, n, k, 0}, first_row, last_row, tile_col);
#endif
#else
  GRETA_UNROLL
  for (u32 row = 0; row < ROWS; ++row) {
    const auto total_of = [&](float x, u32 t) {
      return reduce_threads<LANES>(x, Add{}, wave_sums + (row * (TN + NORM) + t) * (THREADS / wave_size));
    };
#if NORM
    const float factor = norm_factor(total_of(squares[row], TN), k, epsilon);
#else
    constexpr float factor = 1.0f;
#endif
    float total[TN];
    GRETA_UNROLL
    for (u32 t = 0; t < TN; ++t) total[t] = total_of(sum[row][t], t) * factor;
    if (lane != 0 || row > last_row) continue;
#if GATED
    GRETA_UNROLL
    for (u32 t = 0; t < TN; t += 2) {
      const u32 col = (first_col + t) / 2;
      if (col < n) put_gated(c, first_row + row, col, n, total[t], total[t + 1]);
    }
#else
    GRETA_UNROLL
    for (u32 t = 0; t < TN; ++t) {
      if (first_col + t < n) put(c, added, first_row + row, first_col + t, n, total[t]);
    }
#endif
  }
#endif
}
