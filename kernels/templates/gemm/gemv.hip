// Few rows (ROWS = m): bound by reading B once. A workgroup covers WIDTH columns; its threads
// divide K among KL lanes, each with UNROLL independent loads in flight, and then add their sums
// through shared memory in two steps. With SPLIT > 1 the workgroup's z picks a slice of K, and the
// last slice to arrive adds them all, in the order of K whatever the order of arrival.

#if !defined(ROWS) || !defined(THREADS) || !defined(COLS) || !defined(VA) || !defined(VB) || \
    !defined(UNROLL) || !defined(SPLIT) || !defined(A_ALONG_K) || !defined(B_ALONG_K)
#error "ROWS THREADS COLS VA VB UNROLL SPLIT and {A,B}_ALONG_K must be defined"
#endif

#define KL (THREADS / COLS)  // lanes along K
#if B_ALONG_K
#define CT 1                     // columns of a thread: VB elements of one column in a load
#define K_OF(u) ((u) * KL * VB)  // of a thread's load, from its first one on
#if VA != VB || A_ALONG_K == 0
#error "where B is contiguous along K, A is read along with it"
#endif
#else
#define CT VB  // VB columns of one K in a load
// VA neighbours in K, which one load of A serves; lanes side by side, so that workgroups walk
// through B together.
#define K_OF(u) ((u) / VA * (KL * VA) + (u) % VA)
#if UNROLL % VA != 0 || (A_ALONG_K == 0 && VA != 1)
#error "VA divides UNROLL, and is 1 where A is not contiguous along K"
#endif
#endif
#define WIDTH (COLS * CT)

#if ROWS < 1 || THREADS % COLS != 0 || THREADS < WIDTH || SPLIT < 1
#error "ROWS and SPLIT are at least 1; COLS divides THREADS, which are at least WIDTH"
#endif

// Lanes are added in PARTS groups first: about the square root of their number.
#if KL >= 1024
#define PARTS 32
#elif KL >= 256
#define PARTS 16
#elif KL >= 64
#define PARTS 8
#elif KL >= 16
#define PARTS 4
#else
#define PARTS 1
#endif

#include "gemm/operands.hip"

typedef float Sums[ROWS][CT];

// Elements of A that meet load u: VA of one row from k on, or zeros past the end.
GRETA_DEVICE Pack<In, VA> load_a(const Arguments& args, u32 row, u32 k, u32 k_end) {
  Pack<In, VA> pack = {};
  const u64 at = A_ALONG_K ? u64(row) * args.k + k : u64(k) * args.m + row;
  if (k < k_end) pack = load_pack<VA>(args.a + at);
  return pack;
}

// B's elements from k on in the thread's columns; zeros past the end of K.
GRETA_DEVICE void load_b(const Arguments& args, const In* column, u32 k, u32 k_end,
                         Pack<In, VB> (&b)[UNROLL]) {
  const u64 stride = B_ALONG_K ? 1 : args.n;
  const In* const first = column + k * stride;
  if (k + K_OF(UNROLL - 1) < k_end) {
    GRETA_UNROLL
    for (u32 u = 0; u < UNROLL; ++u) b[u] = load_pack<VB>(first + K_OF(u) * stride);
  } else {
    GRETA_UNROLL
    for (u32 u = 0; u < UNROLL; ++u) {
      b[u] = {};
      if (k + K_OF(u) < k_end) b[u] = load_pack<VB>(first + K_OF(u) * stride);
    }
  }
}

GRETA_DEVICE void accumulate(const Arguments& args, const Pack<In, VB> (&b)[UNROLL], u32 k,
                             u32 k_end, Sums& sums) {
#if B_ALONG_K
  GRETA_UNROLL
  for (u32 u = 0; u < UNROLL; ++u) {
    GRETA_UNROLL
    for (u32 row = 0; row < ROWS; ++row) {
      const Pack<In, VA> a = load_a(args, row, k + K_OF(u), k_end);
      GRETA_UNROLL
      for (u32 j = 0; j < VB; ++j)
        sums[row][0] = multiply_add(element(a, j), element(b[u], j), sums[row][0]);
    }
  }
#else
  GRETA_UNROLL
  for (u32 row = 0; row < ROWS; ++row) {
    GRETA_UNROLL
    for (u32 u = 0; u < UNROLL; u += VA) {
      const Pack<In, VA> a = load_a(args, row, k + K_OF(u), k_end);
      GRETA_UNROLL
      for (u32 v = 0; v < VA; ++v) {
        GRETA_UNROLL
        for (u32 j = 0; j < VB; ++j)
          sums[row][j] = multiply_add(element(a, v), element(b[u + v], j), sums[row][j]);
      }
    }
  }
#endif
}

// Adds the lanes' sums of one row: the first WIDTH threads get the totals of the columns.
GRETA_DEVICE float add_lanes(const float (&sum)[CT], u32 lane, u32 column, float* lane_sums,
                             float* part_sums) {
  const u32 tid = thread_index();
  GRETA_UNROLL
  for (u32 j = 0; j < CT; ++j) lane_sums[lane * WIDTH + column * CT + j] = sum[j];
  block_barrier();
  GRETA_NO_UNROLL
  for (u32 i = tid; i < PARTS * WIDTH; i += THREADS) {
    float part = 0.0f;
    GRETA_NO_UNROLL
    for (u32 l = i / WIDTH; l < KL; l += PARTS) part += lane_sums[l * WIDTH + i % WIDTH];
    part_sums[i] = part;
  }
  block_barrier();
  float total = 0.0f;
  if (tid < WIDTH) {
    GRETA_UNROLL
    for (u32 p = 0; p < PARTS; ++p) total += part_sums[p * WIDTH + tid];
  }
  return total;
}

// Counts this slice in; true for the last one, which then sees the others' sums. The barriers order
// the workgroup's sums with its first thread, whose own fences order that thread's count between
// them and what it read of the others'.
GRETA_DEVICE bool last_slice(u32* counter, u32* arrived) {
  release_to_device();
  block_barrier();
  if (thread_index() == 0) {
    release_to_device();
    *arrived = atomic_add(counter, 1);
    acquire_from_device();
  }
  block_barrier();
  acquire_from_device();
  return *arrived == SPLIT - 1;
}

GRETA_KERNEL(THREADS) gemm_gemv(GEMM_PARAMETERS) {
  GRETA_SHARED(float, lane_sums, KL * WIDTH);  // of one row
  GRETA_SHARED(float, part_sums, PARTS * WIDTH);
  const Arguments args = GEMM_ARGUMENTS;
  const u32 group = block_index<THREADS>();
  if (group >= tiles_n) return;
  const u32 tid = thread_index();
#if B_ALONG_K
  const u32 lane = tid % KL, column = tid / KL;
  const u32 first_k = lane * VB;
  constexpr u32 k_stride = KL * VB * UNROLL;
#else
  const u32 lane = tid / COLS, column = tid % COLS;
  const u32 first_k = lane * VA;
  constexpr u32 k_stride = KL * UNROLL;
#endif
  // Threads past the last column repeat it and store nothing.
  const u64 safe = smaller(group * WIDTH + column * CT, n - CT);
  const In* const b_column = b + safe * (B_ALONG_K ? k : 1);
  const u32 k_begin = smaller(block_z() * slice, k);
  const u32 k_end = smaller(k_begin + slice, k);
  Sums sums = {};
  for (u32 at = k_begin + first_k; at < k_end; at += k_stride) {
    Pack<In, VB> packs[UNROLL];
    load_b(args, b_column, at, k_end, packs);
    accumulate(args, packs, at, k_end, sums);
  }

  const u32 out_col = group * WIDTH + tid;
  const bool writes = tid < WIDTH && out_col < n;
  GRETA_UNROLL
  for (u32 row = 0; row < ROWS; ++row) {
    const float total = add_lanes(sums[row], lane, column, lane_sums, part_sums);
    if (writes) {
#if SPLIT > 1
      *partial_sum(args, block_z(), row, out_col) = total;
#else
      put(args, row, out_col, total);
#endif
    }
  }
#if SPLIT > 1
  GRETA_SHARED(u32, arrived, 1);  // slices before this one
  if (!last_slice(counters + group, arrived)) return;
  if (tid == 0) counters[group] = 0;
  if (!writes) return;
  GRETA_UNROLL
  for (u32 row = 0; row < ROWS; ++row) {
    float total = 0.0f;
    GRETA_UNROLL
    for (u32 s = 0; s < SPLIT; ++s) total += *partial_sum(args, s, row, out_col);
    put(args, row, out_col, total);
  }
#endif
}
