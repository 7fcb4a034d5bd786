// Scaled products of few rows by plain arithmetic, bound by reading B once. A workgroup has COLS x TN
// columns of ROWS rows of C. Its threads divide k, or with SPLIT its slice of k, among LANES = THREADS /
// COLS, each with UNROLL chunks of 16 k of each of its TN columns in flight, and add their sums in the
// end. With SCALES >= 2 each chunk's sums are scaled; with SCALES=3 a chunk is the 32 k of a scale.

#if !defined(ROWS) || !defined(THREADS) || !defined(COLS) || !defined(TN) || !defined(UNROLL)
#error "ROWS THREADS COLS TN UNROLL must be defined"
#endif
#if ROWS < 1 || TN < 1 || UNROLL < 1 || THREADS % COLS != 0
#error "ROWS, TN and UNROLL are at least 1; COLS divides THREADS"
#endif

#include "common/reduce.hip"
#include "scaled_gemm/decode.hip"
#include "scaled_gemm/slices.hip"

#define LANES (THREADS / COLS)

constexpr u32 chunk_k = SCALES == 3 ? 32 : 16;
typedef LoadedNumbers<FORMAT, chunk_k> ChunkA;
typedef LoadedNumbers<FORMAT_B, chunk_k> ChunkB;

typedef Number Part[ROWS][TN];
typedef Total Totals[ROWS][TN];

// Adds the products of a chunk of each column with the same k of A, whose rows are `stride` bytes apart.
// `last` is the last of the ROWS rows that A has.
GRETA_DEVICE void multiply_chunk(const u8* a, u64 stride, u32 last, const ChunkB (&b)[TN],
                                 Part& part) {
  ChunkA rows[ROWS];
  GRETA_UNROLL
  for (u32 row = 0; row < ROWS; ++row) rows[row] = ChunkA::load(a + smaller(row, last) * stride);
  GRETA_UNROLL
  for (u32 w = 0; w < chunk_k / 4; ++w) {
#if FORMAT == 4
    GRETA_UNROLL
    for (u32 i = 0; i < ROWS * TN; ++i) {
      Number& sum = part[i / TN][i % TN];
      sum = add_dot(rows[i / TN].word(w), b[i % TN].word(w), sum);
    }
#else
    Number of_b[TN][4];
    GRETA_UNROLL
    for (u32 t = 0; t < TN; ++t) b[t].decode_four(w, of_b[t]);
    GRETA_UNROLL
    for (u32 row = 0; row < ROWS; ++row) {
      Number of_a[4];
      rows[row].decode_four(w, of_a);
      GRETA_UNROLL
      for (u32 i = 0; i < TN * 4; ++i) {
        add_product(of_a[i % 4], of_b[i / 4][i % 4], part[row][i / 4]);
      }
    }
#endif
  }
}

// Where a thread's sums belong.
struct Place {
  u32 first_row, last, first_col;  // `last` of the rows
};

// Adds a chunk's products from k on. `a`: the first row's number there.
GRETA_DEVICE void add_chunk(const Result& result, const Place& place, const u8* a, u32 k, u64 stride,
                            const ChunkB (&b)[TN], Totals& totals) {
#if SCALES >= 2
  Part part = {};
  multiply_chunk(a, stride, place.last, b, part);
  float of_b[TN];
  GRETA_UNROLL
  for (u32 t = 0; t < TN; ++t) {
    of_b[t] = result.scales.of_b(smaller(place.first_col + t, result.n - 1), k);
  }
  GRETA_UNROLL
  for (u32 i = 0; i < ROWS * TN; ++i) {
    const u32 row = i / TN, t = i % TN;
    const float of_a = result.scales.of_a(place.first_row + smaller(row, place.last), k);
    totals[row][t] = multiply_add(float(part[row][t]), of_a * of_b[t], totals[row][t]);
  }
#else
  multiply_chunk(a, stride, place.last, b, totals);
#endif
}

GRETA_DEVICE float reduce_total(float total, float* shared) {
  return reduce_threads<LANES>(total, Add{}, shared);
}
GRETA_DEVICE int reduce_total(int total, int* shared) {
  return int(reduce_threads<LANES>(u32(total), Add{}, reinterpret_cast<u32*>(shared)));
}

GRETA_KERNEL(THREADS)
scaled_gemm_gemv(const u8* GRETA_READ a, const u8* GRETA_READ b, const Scale* GRETA_READ scales_a,
                 const Scale* GRETA_READ scales_b, Out* __restrict__ c, u32 m, u32 n, u32 k,
                 u32 tiles_n SLICE_PARAMETERS) {
  begin_launch_alone();
  GRETA_SHARED(Total, wave_sums, ROWS * TN * (THREADS / wave_size + 1));
  const u32 block = block_index<THREADS>();
  const u32 lane = thread_index() % LANES, column = thread_index() / LANES;
  const u32 first_row = block / tiles_n * ROWS, tile_col = block % tiles_n * (COLS * TN);
  if (first_row >= m) return;  // of the whole workgroup
  const Result result = {
      {scales_a, scales_b, (k + scale_block - 1) / scale_block}, c, m, n, SLICES};
  const Place place = {first_row, smaller(ROWS - 1, m - 1 - first_row), tile_col + column * TN};
  const u32 stride_a = k / of_byte<FORMAT>, stride_b = k / of_byte<FORMAT_B>;
  const u8* const a_first = a + u64(first_row) * stride_a;
  const u32 end = result.slices.end(k);

  Totals totals = {};
  for (u32 at = result.slices.begin(k) + lane * chunk_k; at < end;
       at += LANES * UNROLL * chunk_k) {
    ChunkB chunk[UNROLL][TN];
    GRETA_UNROLL
    for (u32 i = 0; i < UNROLL * TN; ++i) {
      // Threads past the last column or chunk repeat it.
      const u64 col = smaller(place.first_col + i % TN, n - 1);
      const u32 from = smaller(at + i / TN * (LANES * chunk_k), end - chunk_k);
      chunk[i / TN][i % TN] = ChunkB::load(b + col * stride_b + from / of_byte<FORMAT_B>);
    }
    await_earlier_launches();
    loads_go_ahead();
    GRETA_UNROLL
    for (u32 u = 0; u < UNROLL; ++u) {
      const u32 from = at + u * (LANES * chunk_k);
      if (from >= end) continue;
      const u8* const of_a = a_first + from / of_byte<FORMAT>;
      add_chunk(result, place, of_a, from, stride_a, chunk[u], totals);
    }
  }
  await_earlier_launches();  // of threads without a chunk, too
  let_next_launch_begin();
  GRETA_UNROLL
  for (u32 i = 0; i < ROWS * TN; ++i) {
    const u32 row = i / TN, col = place.first_col + i % TN;
    Total* const shared = wave_sums + i * (THREADS / wave_size);
    const Total total = reduce_total(totals[row][i % TN], shared);
    if (lane == 0 && row <= place.last && col < n) result.put(first_row + row, col, total);
  }
  result.finish<THREADS, ROWS, COLS * TN>(block, first_row, tile_col);
}
