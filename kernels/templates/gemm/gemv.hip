// Few rows (ROWS = m): bound by reading B once. A workgroup covers WIDTH columns; its threads
// divide K among KL lanes, each with UNROLL independent loads of its columns in flight, and then
// add their sums, those of a wave by shuffles and those of several through shared memory. With
// SPLIT > 1 the workgroup's z picks a slice of K, and the last slice to arrive adds them all, in the
// order of K whatever the order of arrival. With GATED, half of the columns are gates, the others the
// ups that they are multiplied by. With NORM, A is multiplied by its weight as it is loaded, and its
// squares are one more sum, by which the others are scaled in the end.

#if !defined(ROWS) || !defined(THREADS) || !defined(COLS) || !defined(VA) || !defined(VB) || \
    !defined(TN) || !defined(UNROLL) || !defined(SPLIT) || !defined(A_ALONG_K) ||         \
    !defined(B_ALONG_K)
#error "ROWS THREADS COLS VA VB TN UNROLL SPLIT and {A,B}_ALONG_K must be defined"
#endif

#define KL (THREADS / COLS)  // lanes along K
#if B_ALONG_K
#define CT TN                    // columns of a thread: VB elements of one column in a load
#define K_OF(u) ((u) * KL * VB)  // of a thread's load, from its first one on
#if VA != VB
#error "where B is contiguous along K, A is read along with it"
#endif
#else
#define CT VB  // VB columns of one K in a load
// VA neighbours in K, which one load of A serves; lanes side by side, so that workgroups walk
// through B together.
#define K_OF(u) ((u) / VA * (KL * VA) + (u) % VA)
#if UNROLL % VA != 0 || (A_ALONG_K == 0 && VA != 1) || TN != 1
#error "VA divides UNROLL, and is 1 where A is not contiguous along K; TN is 1"
#endif
#endif
// Whether neighbouring threads share a column; else they have neighbouring columns.
#define NEIGHBOURS_ALONG_K (B_ALONG_K && !B_PANELS)
#define WIDTH (COLS * CT)
#if GATED
#define OUT_WIDTH (WIDTH / 2)  // columns of C
#if OUT_WIDTH == 0 || (!B_ALONG_K && COLS == 1)
#error "gates and ups are columns of their own"
#endif
#else
#define OUT_WIDTH WIDTH
#endif
#define SPAN (CT < OUT_WIDTH ? CT : OUT_WIDTH)  // neighbours among a thread's columns

#if ROWS < 1 || THREADS % COLS != 0 || THREADS < WIDTH || SPLIT < 1
#error "ROWS and SPLIT are at least 1; COLS divides THREADS, which are at least WIDTH"
#endif

#include "common/reduce.hip"
#include "gemm/groups.hip"
#include "gemm/operands.hip"
#if SPLIT > 1
#include "gemm/slices.hip"
#endif

// Neighbours in a load of B are multiplied two at a time. Where it is a column's, their products
// add up to one sum in the end.
#if VB > 1
#define PAIR 2
typedef f32x2 Sum;
#else
#define PAIR 1
typedef float Sum;
#endif
typedef Sum Sums[ROWS][B_ALONG_K ? TN : VB / PAIR];

GRETA_DEVICE Sum elements(const Pack<In, VB>& pack, u32 i) {
#if PAIR == 2
  return element_pair(pack, i * 2);
#else
  return element(pack, i);
#endif
}

// What is read for the multiplications with STEP loads of B: where A is read along K, one load of it
// serves VA loads of B, or all of a load of B's column.
#define STEP (B_ALONG_K ? 1 : VA)

struct APacks {
  Pack<In, VA> row[ROWS];
#if NORM
  Pack<In, VA> weight;
#endif

  // K elements from k on, or zeros if not `inside`.
  GRETA_DEVICE void load(const Arguments& args, u32 k, bool inside) {
    const u64 stride = stride_a(args);
    GRETA_UNROLL
    for (u32 r = 0; r < ROWS; ++r) {
#if A_ALONG_K || VA == 1
      row[r] = load_pack<VA>(args.a + (A_ALONG_K ? r * stride + k : k * stride + r));
#else
      float apart[VA];
      GRETA_UNROLL
      for (u32 j = 0; j < VA; ++j) apart[j] = to_float(args.a[(k + j) * stride + r]);
      row[r] = narrow_pack<In>(apart);
#endif
      if (!inside) row[r] = {};
    }
#if NORM
    weight = load_pack<VA>(args.weight + k);
#endif
  }

  // Element j of row r, weighted.
  GRETA_DEVICE float weighted(u32 r, u32 j) const {
#if NORM
    return element(row[r], j) * element(weight, j);
#else
    return element(row[r], j);
#endif
  }

#if NORM
  GRETA_DEVICE void add_squares(float (&sums)[ROWS]) const {
    GRETA_UNROLL
    for (u32 r = 0; r < ROWS; ++r) {
      GRETA_UNROLL
      for (u32 j = 0; j < VA; ++j) {
        const float x = element(row[r], j);
        sums[r] = multiply_add(x, x, sums[r]);
      }
    }
  }
#endif
};

#if B_ALONG_K
// Adds the products with neighbours along K in the thread's column c.
GRETA_DEVICE void multiply_along_k(const APacks& a, const Pack<In, VB>& b, u32 c, Sums& sums) {
  GRETA_UNROLL
  for (u32 j = 0; j < VB / PAIR; ++j) {
    const Sum e = elements(b, j);
    GRETA_UNROLL
    for (u32 r = 0; r < ROWS; ++r) {
#if PAIR == 2
      const Sum x = {a.weighted(r, j * 2), a.weighted(r, j * 2 + 1)};
#else
      const Sum x = a.weighted(r, j);
#endif
      sums[r][c] = multiply_add(x, e, sums[r][c]);
    }
  }
}
#else
// Adds the products of element v of a load of A with neighbours in a row of B.
GRETA_DEVICE void multiply_across(const APacks& a, u32 v, const Pack<In, VB>& b, Sums& sums) {
  Sum e[VB / PAIR];
  GRETA_UNROLL
  for (u32 j = 0; j < VB / PAIR; ++j) e[j] = elements(b, j);
  GRETA_UNROLL
  for (u32 r = 0; r < ROWS; ++r) {
    GRETA_UNROLL
    for (u32 j = 0; j < VB / PAIR; ++j) {
      sums[r][j] = multiply_add(a.weighted(r, v), e[j], sums[r][j]);
    }
  }
}
#endif

// The thread's column c in B, from its first one on.
GRETA_DEVICE u64 column_offset(const Arguments& args, u32 c) {
#if B_PANELS  // these are lines of one panel, or with gates of two
  return c / SPAN * u64(args.n) * args.k + c % SPAN * 8;
#elif GATED
  return (c / SPAN * u64(args.n) + c % SPAN) * stride_b(args);
#else
  return c * u64(stride_b(args));
#endif
}

// Adds the products of the UNROLL loads of B from k on; if not `whole`, without those past k_end.
// Instead of these it loads the first one again: branches would cost more, since compilers collect
// the products behind the last of them. `column`: the thread's first one in B. `squares` are added
// to those of these loads, so that no sum has many terms.
template <bool whole>
GRETA_DEVICE void accumulate(const Arguments& args, const In* column, u32 k, u32 k_end, Sums& sums,
                             float (&squares)[ROWS]) {
  const auto inside = [=](u32 u) { return whole || k + K_OF(u) < k_end; };
  const auto k_of = [=](u32 u) { return inside(u) ? k + K_OF(u) : k; };
  Pack<In, VB> b[UNROLL][TN];
  GRETA_UNROLL
  for (u32 u = 0; u < UNROLL; ++u) {
    GRETA_UNROLL
    for (u32 c = 0; c < TN; ++c) {
      b[u][c] = load_pack<VB>(column + column_offset(args, c) + b_along(args, k_of(u)));
      if (!inside(u)) b[u][c] = {};
    }
  }
  APacks next;
  await_earlier_launches();
  next.load(args, k, true);
  loads_go_ahead();
#if NORM
  float some[ROWS] = {};
#endif
  GRETA_UNROLL
  for (u32 u = 0; u < UNROLL; u += STEP) {
    const APacks a = next;
    if (u + STEP < UNROLL) next.load(args, k_of(u + STEP), inside(u + STEP));
#if B_ALONG_K
    GRETA_UNROLL
    for (u32 c = 0; c < TN; ++c) multiply_along_k(a, b[u][c], c, sums);
#else
    GRETA_UNROLL
    for (u32 v = 0; v < STEP; ++v) multiply_across(a, v, b[u + v][0], sums);
#endif
#if NORM
    a.add_squares(some);
#endif
    loads_stay_behind();
  }
#if NORM
  GRETA_UNROLL
  for (u32 r = 0; r < ROWS; ++r) squares[r] += some[r];
#endif
}

// Lanes of a wave that share a column, how far apart they are, and waves that share one.
constexpr u32 wave_lanes =
    NEIGHBOURS_ALONG_K ? (KL < wave_size ? KL : wave_size) : wave_size / COLS;
constexpr u32 lane_step = NEIGHBOURS_ALONG_K ? 1 : COLS;
constexpr u32 parts = KL / wave_lanes;
static_assert(THREADS % wave_size == 0 && COLS <= wave_size, "waves are whole");

// The thread's sum of its column c.
GRETA_DEVICE float sum_of(const Sum (&sums)[B_ALONG_K ? TN : VB / PAIR], u32 c) {
#if PAIR == 1
  return sums[c];
#elif B_ALONG_K
  return sums[c][0] + sums[c][1];
#else
  return sums[c / 2][int(c % 2)];
#endif
}

#define LINE (WIDTH + NORM)  // sums of a part of the lanes

// Adds the lanes' sums of one row, and those of its squares.
GRETA_DEVICE void add_lanes(const Sum (&sums)[B_ALONG_K ? TN : VB / PAIR], float squares, u32 lane,
                            u32 column, float* part_sums) {
  const bool first = lane_index() / lane_step % wave_lanes == 0;
  GRETA_UNROLL
  for (u32 c = 0; c < CT; ++c) {
    const float sum = reduce_lanes<wave_lanes, lane_step>(sum_of(sums, c), Add{});
    if (first) part_sums[lane / wave_lanes * LINE + column * CT + c] = sum;
  }
#if NORM
  squares = reduce_lanes<wave_lanes, lane_step>(squares, Add{});
  if (first && column == 0) part_sums[lane / wave_lanes * LINE + WIDTH] = squares;
#endif
  block_barrier();
}

// The total of the workgroup's column w, or with w = WIDTH of the squares.
GRETA_DEVICE float total_of(const float* part_sums, u32 w) {
  float sum = 0.0f;
  GRETA_UNROLL
  for (u32 p = 0; p < parts; ++p) sum += part_sums[p * LINE + w];
  return sum;
}

#if SPLIT > 1
// Where a slice's total of the workgroup's column w is, as in total_of().
GRETA_DEVICE float* partial_total(const Arguments& args, u32 slice, u32 row, u32 w) {
  const u32 group = block_index<THREADS>();
  if (w == WIDTH) return partial_sum(args, slice, row, product_cols(args) + group);
  const u32 col = group * OUT_WIDTH + w % OUT_WIDTH;
  return partial_sum(args, slice, row, w < OUT_WIDTH ? col : args.n + col);
}

GRETA_DEVICE void put_partial(const Arguments& args, u32 row, u32 w, const float* part_sums) {
  *partial_total(args, block_z(), row, w) = total_of(part_sums, w);
}

// The total of all slices, added in their order.
GRETA_DEVICE float total_of_slices(const Arguments& args, u32 row, u32 w) {
  float total = 0.0f;
  GRETA_UNROLL
  for (u32 s = 0; s < SPLIT; ++s) total += *partial_total(args, s, row, w);
  return total;
}
#endif

// Finishes an element of C. `total(w)`: the sum of the workgroup's column w, as in total_of().
template <typename Total>
GRETA_DEVICE void finish(const Arguments& args, u32 row, u32 col, Total total) {
  const u32 w = thread_index();
#if NORM
  const float factor = norm_factor(args, total(WIDTH));
#else
  constexpr float factor = 1.0f;
#endif
#if GATED
  put(args, row, col, total(w) * factor, total(OUT_WIDTH + w) * factor);
#else
  put(args, row, col, total(w) * factor);
#endif
}

// Stores what a row of the workgroup's columns is worth, or with SPLIT > 1 leaves its sums.
GRETA_DEVICE void put_row(const Arguments& args, u32 row, u32 col, const float* part_sums) {
#if SPLIT > 1
  put_partial(args, row, thread_index(), part_sums);
#if GATED
  put_partial(args, row, OUT_WIDTH + thread_index(), part_sums);
#endif
#if NORM
  if (thread_index() == 0) put_partial(args, row, WIDTH, part_sums);
#endif
#else
  finish(args, row, col, [&](u32 w) { return total_of(part_sums, w); });
#endif
}

// Adds the products of this thread's part of K, which begins with `at`.
GRETA_DEVICE void accumulate_part(const Arguments& args, const In* b_column, u32 at, u32 k_end, Sums& sums,
                                  float (&squares)[ROWS]) {
  constexpr u32 stride = KL * UNROLL * (B_ALONG_K ? VB : 1);
  for (; at < k_end; at += stride) {
    if (at + K_OF(UNROLL - 1) < k_end) {
      accumulate<true>(args, b_column, at, k_end, sums, squares);
    } else {
      accumulate<false>(args, b_column, at, k_end, sums, squares);
    }
  }
}

GRETA_KERNEL(THREADS) gemm_gemv(GEMM_PARAMETERS) {
#if GROUPED
  begin_launch();  // another operation writes the rows of groups
#else
  begin_launch_alone();
#endif
  GRETA_SHARED(float, part_sums, parts * LINE);  // of one row
  const Arguments all = GEMM_ARGUMENTS;
  if (block_index<THREADS>() >= tiles_m * tiles_n) return;
  // The workgroup's number among those of its product.
  const u32 group = GROUPED ? block_index<THREADS>() % tiles_n : block_index<THREADS>();
  const Arguments args =
      of_group(all, find_group<ROWS>(all, GROUPED ? block_index<THREADS>() / tiles_n : 0));
  const u32 tid = thread_index();
#if NEIGHBOURS_ALONG_K
  const u32 lane = tid % KL, column = tid / KL;
#else
  const u32 lane = tid / COLS, column = tid % COLS;
#endif
  // Threads past the last column repeat it and store nothing.
#if GATED
  const u32 half = column * CT / OUT_WIDTH, in_half = column * CT % OUT_WIDTH;
  const u64 safe = smaller(group * OUT_WIDTH + in_half, n - SPAN) + half * u64(n);
#else
  const u64 safe = smaller(group * WIDTH + column * CT, n - CT);
#endif
  const In* const b_column = args.b + b_line(args, safe);
  const u32 k_begin = smaller(block_z() * slice, k);
  const u32 k_end = smaller(k_begin + slice, k);
  Sums sums = {};
  float squares[ROWS] = {};
  accumulate_part(args, b_column, k_begin + lane * VA, k_end, sums, squares);

  await_earlier_launches();  // of threads without a part of K, too
  let_next_launch_begin();
  const u32 out_col = group * OUT_WIDTH + tid;
  const bool writes = tid < OUT_WIDTH && out_col < n;
  GRETA_UNROLL
  for (u32 row = 0; row < ROWS; ++row) {
    if (row > 0) block_barrier();  // all have read the row before
    add_lanes(sums[row], squares[row], lane, column, part_sums);
    if (writes) put_row(args, row, out_col, part_sums);
  }
#if SPLIT > 1
  GRETA_SHARED(u32, before, 1);  // slices before this one
  if (!last_to_arrive(counters + group, SPLIT, before)) return;
  if (!writes) return;
  GRETA_UNROLL
  for (u32 row = 0; row < ROWS; ++row) {
    finish(args, row, out_col, [&](u32 w) { return total_of_slices(args, row, w); });
  }
#endif
}
