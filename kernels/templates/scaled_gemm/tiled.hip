// Scaled products of numbers of eight bits by plain arithmetic. A workgroup computes BM x BN of C, a
// thread TM x TN of these, whose rows and columns are as far apart as there are threads. It decodes
// BK of k of both operands to shared memory at a time, VEC bytes with each load, and with SCALES=2
// scales the sums of each 128 k.

#if !defined(BM) || !defined(BN) || !defined(BK) || !defined(TM) || !defined(TN) || !defined(VEC)
#error "BM BN BK TM TN VEC must be defined"
#endif
#if BM % TM != 0 || BN % TN != 0 || BK % VEC != 0 || (VEC != 4 && VEC != 16) || 128 % BK != 0
#error "TM divides BM, TN divides BN, VEC is 4 or 16 and divides BK, BK divides 128"
#endif

#include "scaled_gemm/numbers.hip"

constexpr u32 rows_of_threads = BM / TM, columns_of_threads = BN / TN;
#define THREADS (BM / TM * (BN / TN))

// Decodes BK of k, from `k` on, of `lines` rows of an operand, from `first` on. What lies past the end
// of k is zero, and rows past the last one repeat it.
template <u32 lines, u32 pitch>
GRETA_DEVICE void load_tile(const u8* operand, u32 first, u32 rows, u32 k, u32 end, Number* tile) {
  constexpr u32 of_line = BK / VEC;
  for (u32 at = thread_index(); at < lines * of_line; at += THREADS) {
    const u32 line = at / of_line, place = at % of_line * VEC;
    Words<VEC> words = {};
    if (k + place < end) {
      words = load_words<VEC>(operand + u64(smaller(first + line, rows - 1)) * end + k + place);
    }
    GRETA_UNROLL
    for (u32 i = 0; i < VEC; ++i) {
      tile[(place + i) * pitch + line] = number_of(words.word[i / 4] >> i % 4 * 8);
    }
  }
}

GRETA_KERNEL(THREADS)
scaled_gemm_tiled(const u8* __restrict__ a, const u8* __restrict__ b,
                  const float* __restrict__ scales_a, const float* __restrict__ scales_b,
                  Out* __restrict__ c, u32 m, u32 n, u32 k, u32 tiles_n) {
  constexpr u32 pitch_a = BM + 1, pitch_b = BN + 1;
  GRETA_DYNAMIC_SHARED(Number, tile_a);
  Number* const tile_b = tile_a + BK * pitch_a;
  const u32 block = block_index<THREADS>();
  const u32 first_row = block / tiles_n * BM, first_col = block % tiles_n * BN;
  if (first_row >= m) return;  // of the whole workgroup
  const u32 row = thread_index() / columns_of_threads, col = thread_index() % columns_of_threads;
  const ScalePair scales = {scales_a, scales_b, (k + scale_block - 1) / scale_block};

  Number sum[TM][TN] = {};
#if SCALES == 2
  float total[TM][TN] = {};
#endif
  for (u32 at = 0; at < k; at += BK) {
    if (at > 0) block_barrier();  // all have read the tiles before
    load_tile<BM, pitch_a>(a, first_row, m, at, k, tile_a);
    load_tile<BN, pitch_b>(b, first_col, n, at, k, tile_b);
    block_barrier();
    GRETA_NO_UNROLL
    for (u32 i = 0; i < BK; ++i) {
      Number of_a[TM], of_b[TN];
      GRETA_UNROLL
      for (u32 r = 0; r < TM; ++r) of_a[r] = tile_a[i * pitch_a + row + r * rows_of_threads];
      GRETA_UNROLL
      for (u32 t = 0; t < TN; ++t) of_b[t] = tile_b[i * pitch_b + col + t * columns_of_threads];
      GRETA_UNROLL
      for (u32 r = 0; r < TM; ++r) {
        GRETA_UNROLL
        for (u32 t = 0; t < TN; ++t) add_product(of_a[r], of_b[t], sum[r][t]);
      }
    }
#if SCALES == 2
    if ((at + BK) % scale_block != 0 && at + BK < k) continue;
    GRETA_UNROLL
    for (u32 r = 0; r < TM; ++r) {
      const u32 of_a = smaller(first_row + row + r * rows_of_threads, m - 1);
      const float scale = scales.of_a(of_a, at);
      GRETA_UNROLL
      for (u32 t = 0; t < TN; ++t) {
        const u32 of_b = smaller(first_col + col + t * columns_of_threads, n - 1);
        total[r][t] = multiply_add(float(sum[r][t]), scale * scales.of_b(of_b, at), total[r][t]);
        sum[r][t] = 0;
      }
    }
#endif
  }
  GRETA_UNROLL
  for (u32 r = 0; r < TM; ++r) {
    const u32 to_row = first_row + row + r * rows_of_threads;
    if (to_row >= m) continue;
    GRETA_UNROLL
    for (u32 t = 0; t < TN; ++t) {
      const u32 to_col = first_col + col + t * columns_of_threads;
      if (to_col >= n) continue;
#if SCALES == 2
      const float value = total[r][t];
#else
      const float value = float(sum[r][t]) * (scales.of_a(to_row, 0) * scales.of_b(to_col, 0));
#endif
      c[u64(to_row) * n + to_col] = narrow<Out>(value);
    }
  }
}
