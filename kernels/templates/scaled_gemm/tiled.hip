// Scaled products of numbers of eight bits by plain arithmetic. A workgroup computes BM x BN of C, a
// thread TM x TN of these, whose rows and columns are as far apart as there are threads. It decodes
// BK of k of both operands to shared memory at a time, VEC bytes with each load, and with SCALES >= 2
// scales the sums of each 128 k, or with SCALES=3 of each 32.

#if !defined(BM) || !defined(BN) || !defined(BK) || !defined(TM) || !defined(TN) || !defined(VEC)
#error "BM BN BK TM TN VEC must be defined"
#endif
#if BM % TM != 0 || BN % TN != 0 || BK % VEC != 0 || (VEC != 4 && VEC != 16) || 128 % BK != 0
#error "TM divides BM, TN divides BN, VEC is 4 or 16 and divides BK, BK divides 128"
#endif

#include "scaled_gemm/groups.hip"

#if SCALES == 3 && (32 % BK != 0 || ((FORMAT == 5 || FORMAT_B == 5) && BK % (VEC * 2) != 0))
#error "with SCALES=3, BK divides 32, and loads of e2m1, 2 VEC numbers, divide BK"
#endif

#if GATE && TN % 2 != 0
#error "a thread has the gate and the up of a column"
#endif

constexpr u32 rows_of_threads = BM / TM, columns_of_threads = BN / TN;
#define THREADS (BM / TM * (BN / TN))

// Decodes BK of k, from `k` on, of `lines` rows of an operand, the first of which is row_of(0). What lies
// past the end of k is zero.
template <u32 format, u32 lines, u32 pitch, typename RowOf>
GRETA_DEVICE void load_tile(const u8* operand, const RowOf& row_of, u32 k, u32 end, Number* tile) {
  constexpr u32 numbers = VEC * of_byte<format>, of_word = 4 * of_byte<format>;
  constexpr u32 of_line = BK / numbers;
  for (u32 at = thread_index(); at < lines * of_line; at += THREADS) {
    const u32 line = at / of_line, place = at % of_line * numbers;
    Words<VEC> words = {};
    if (k + place < end) {
      words = load_words<VEC>(operand + (u64(row_of(line)) * end + k + place) / of_byte<format>);
    }
    GRETA_UNROLL
    for (u32 i = 0; i < numbers; ++i) {
      const u32 bits = words.word[i / of_word] >> i % of_word * (32 / of_word);
      tile[(place + i) * pitch + line] = number_of<format>(bits);
    }
  }
}

GRETA_KERNEL(THREADS)
SCALED_ENTRY(tiled)
(const u8* GRETA_READ a, const u8* GRETA_READ b, const Scale* GRETA_READ scales_a,
 const Scale* GRETA_READ scales_b, Out* __restrict__ c, u32 m, u32 n, u32 k,
 u32 tiles_n GROUP_PARAMETERS) {
  begin_launch();
  constexpr u32 pitch_a = BM + 1, pitch_b = BN + 1;
  GRETA_DYNAMIC_SHARED(Number, tile_a);
  Number* const tile_b = tile_a + BK * pitch_a;
  const u32 block = block_index<THREADS>();
  const Group group = group_of_line<BM>(ALL_ROWS, block / tiles_n);
  const u32 first_row = group.row, first_col = block % tiles_n * BN;
  if (first_row >= group.rows) return;  // of the whole workgroup
  a += u64(group.first) * k / of_byte<FORMAT>;
  b += start_of_b(group, n, k);
  c += u64(group.first) * n;
  const u32 row = thread_index() / columns_of_threads, col = thread_index() % columns_of_threads;
  const ScalePair scales =
      scales_of_group({scales_a, scales_b, (k + scale_block - 1) / scale_block}, group, n);
  const auto row_of_a = [&](u32 line) { return smaller(first_row + line, group.rows - 1); };
  const auto line_of_b = [&](u32 line) { return line_of_column<BN>(first_col + line, n); };

  Number sum[TM][TN] = {};
#if SCALES >= 2
  float total[TM][TN] = {};
#endif
  for (u32 at = 0; at < k; at += BK) {
    if (at > 0) block_barrier();  // all have read the tiles before
    load_tile<FORMAT, BM, pitch_a>(a, row_of_a, at, k, tile_a);
    load_tile<FORMAT_B, BN, pitch_b>(b, line_of_b, at, k, tile_b);
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
#if SCALES >= 2
    if ((at + BK) % scale_block != 0 && at + BK < k) continue;
    GRETA_UNROLL
    for (u32 r = 0; r < TM; ++r) {
      const float scale = scales.of_a(row_of_a(row + r * rows_of_threads), at);
      GRETA_UNROLL
      for (u32 t = 0; t < TN; ++t) {
        const float of_b = scales.of_b(line_of_b(col + t * columns_of_threads), at);
        total[r][t] = multiply_add(float(sum[r][t]), scale * of_b, total[r][t]);
        sum[r][t] = 0;
      }
    }
#endif
  }
  const auto value_at = [&](u32 r, u32 t) {
#if SCALES >= 2
    return total[r][t];
#else
    return float(sum[r][t]) * (scales.of_a(row_of_a(row + r * rows_of_threads), 0) *
                               scales.of_b(line_of_b(col + t * columns_of_threads), 0));
#endif
  };
  GRETA_UNROLL
  for (u32 r = 0; r < TM; ++r) {
    const u32 to_row = first_row + row + r * rows_of_threads;
    if (to_row >= group.rows) continue;
    GRETA_UNROLL
    for (u32 t = 0; t < TN / (GATE ? 2 : 1); ++t) {
      const u32 to_col = column_of_c<BN>(first_col + col + t * columns_of_threads);
      if (to_col >= n) continue;
#if GATE
      const float value = gated_value(value_at(r, t), value_at(r, t + TN / 2));
#else
      const float value = value_at(r, t);
#endif
      c[u64(to_row) * n + to_col] = narrow<Out>(value);
    }
  }
}
