// Products of many rows with quantised weights by plain arithmetic. A workgroup computes BM x BN of C, a
// thread TM x TN of these, four neighbours or fewer at a time. It brings BK of k to shared memory at a
// time, A and the weights in f32, so that a weight is decoded once for BM rows. Sums of BK products are
// added: roundings of a long sum of equal products would add up.

#if !defined(BM) || !defined(BN) || !defined(BK) || !defined(TM) || !defined(TN)
#error "BM BN BK TM TN must be defined"
#endif
#if BM % TM != 0 || BN % TN != 0 || BK % 32 != 0 || BK < 32
#error "TM divides BM, TN divides BN, BK is a multiple of 32"
#endif

#include "quantized_gemm/epilogue.hip"
#include "quantized_gemm/groups.hip"
#include "quantized_gemm/stored_weights.hip"

#if GATED && TN % 2 != 0
#error "a thread has the gate and the up of a column"
#endif

#define THREADS (BM / TM * (BN / TN))

// Neighbouring lines of a thread.
constexpr u32 near_rows = TM % 4 == 0 ? 4 : TM % 2 == 0 ? 2 : 1;
constexpr u32 near_columns = TN % 4 == 0 ? 4 : TN % 2 == 0 ? 2 : 1;
constexpr u32 row_threads = BM / TM, column_threads = BN / TN;
constexpr u32 pitch_a = BM + 4, pitch_b = BN + 4;

// The place of a thread's line i in a tile.
template <u32 near, u32 threads>
GRETA_DEVICE u32 place_of(u32 thread, u32 i) {
  return (i / near * threads + thread) * near + i % near;
}

// What lies past the end of k is zero, and lines past the last one repeat it.
GRETA_DEVICE void load_rows(const In* a, u32 first, u32 m, u32 at, u32 k, float* tile) {
  constexpr int width = sizeof(In) == 4 ? 4 : 8;
  for (u32 i = thread_index(); i < BM * (BK / width); i += THREADS) {
    const u32 line = i % BM, place = i / BM * width;
    Pack<In, width> pack = {};
    if (at + place < k) pack = load_pack<width>(a + u64(smaller(first + line, m - 1)) * k + at + place);
    GRETA_UNROLL
    for (int e = 0; e < width; ++e) tile[(place + e) * pitch_a + line] = element(pack, e);
  }
}

// The tile's columns from `first` on, of weights whose rows begin with `first_line`.
GRETA_DEVICE void load_weights(const Weights& weights, u32 first_line, u32 first, u32 n, u32 at, u32 k,
                               float* tile) {
  for (u32 i = thread_index(); i < BN * (BK / CHUNK_WEIGHTS); i += THREADS) {
    const u32 line = i % BN, place = i / BN * CHUNK_WEIGHTS;
    const bool inside = at + place < k;
    const u32 col = smaller(first + line, product_columns(n) - 1);
    const WeightChunk chunk =
        load_stored_chunk(weights, product_columns(n), first_line + line_of_column(col, n),
                          inside ? (at + place) / CHUNK_WEIGHTS : 0, k);
    float* const to = tile + place * pitch_b + line;
    GRETA_UNROLL
    for (u32 e = 0; e < CHUNK_WEIGHTS / 8; ++e) {
      float weight[8];
      weight8(chunk, e, weight);
      const float scale = scale_of(chunk, e * SEGMENTS / (CHUNK_WEIGHTS / 8));
      GRETA_UNROLL
      for (u32 j = 0; j < 8; ++j) to[(8 * e + j) * pitch_b] = inside ? scale * weight[j] : 0.0f;
    }
  }
}

// A thread's elements of one k of a tile.
template <u32 count, u32 near, u32 threads>
GRETA_DEVICE void read_lines(const float* of_k, u32 thread, float (&x)[count]) {
  GRETA_UNROLL
  for (u32 i = 0; i < count; i += near) {
    const auto pack = load_pack<near>(of_k + place_of<near, threads>(thread, i));
    GRETA_UNROLL
    for (u32 j = 0; j < near; ++j) x[i + j] = element(pack, j);
  }
}

GRETA_KERNEL(THREADS)
QUANTIZED_ENTRY(tiled)
(const In* GRETA_READ a, const u8* GRETA_READ b, const Scale* GRETA_READ scales,
 const u8* GRETA_READ zeros, const Out* GRETA_READ added, Out* __restrict__ c, u32 m, u32 n, u32 k,
 u32 tiles_n GROUP_PARAMETERS) {
  begin_launch();
  GRETA_DYNAMIC_SHARED(float, tile_a);
  float* const tile_b = tile_a + BK * pitch_a;
  const u32 block = block_index<THREADS>();
  const Group group = group_of_line<BM>(ALL_ROWS, block / tiles_n);
  const u32 first_row = group.row, first_col = block % tiles_n * BN;
  if (first_row >= group.rows) return;  // of the whole workgroup
  const u32 first_line = first_line_of(group, n);
  a += u64(group.first) * k;
  c += u64(group.first) * n;
  m = group.rows;
  const u32 row = thread_index() / column_threads, col = thread_index() % column_threads;

  float total[TM][TN] = {};
  for (u32 at = 0; at < k; at += BK) {
    if (at > 0) block_barrier();  // all have read the tiles before
    load_rows(a, first_row, m, at, k, tile_a);
    load_weights({b, scales, zeros}, first_line, first_col, n, at, k, tile_b);
    block_barrier();
    float sum[TM][TN] = {};
    GRETA_NO_UNROLL
    for (u32 i = 0; i < BK; ++i) {
      float of_a[TM], of_b[TN];
      read_lines<TM, near_rows, row_threads>(tile_a + i * pitch_a, row, of_a);
      read_lines<TN, near_columns, column_threads>(tile_b + i * pitch_b, col, of_b);
      GRETA_UNROLL
      for (u32 r = 0; r < TM; ++r) {
        GRETA_UNROLL
        for (u32 t = 0; t < TN; ++t) sum[r][t] = multiply_add(of_a[r], of_b[t], sum[r][t]);
      }
    }
    GRETA_UNROLL
    for (u32 i = 0; i < TM * TN; ++i) total[i / TN][i % TN] += sum[i / TN][i % TN];
  }
  GRETA_UNROLL
  for (u32 r = 0; r < TM; ++r) {
    const u32 to_row = first_row + place_of<near_rows, row_threads>(row, r);
    if (to_row >= m) continue;
    GRETA_UNROLL
    for (u32 t = 0; t < TN; t += GATED ? 2 : 1) {
      const u32 to_col = first_col + place_of<near_columns, column_threads>(col, t);
      if (to_col >= product_columns(n)) continue;
#if GATED
      put_gated(c, to_row, to_col / 2, n, total[r][t], total[r][t + 1]);
#else
      put(c, added, to_row, to_col, n, total[r][t]);
#endif
    }
  }
}
