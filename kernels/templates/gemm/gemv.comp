#version 460
// Few rows (ROWS = m): bound by reading B once. A workgroup covers WIDTH columns; its threads
// divide K among KL lanes, each with UNROLL independent loads of its columns in flight, and then add
// their sums through shared memory in two steps. With SPLIT > 1 the workgroup's z picks a slice of K, and the
// last slice to arrive adds them all, in the order of K whatever the order of arrival.

#if !defined(ROWS) || !defined(THREADS) || !defined(COLS) || !defined(VA) || !defined(VB) || \
    !defined(TN) || !defined(UNROLL) || !defined(SPLIT) || !defined(A_ALONG_K) || !defined(B_ALONG_K) || \
    !defined(A_PACK) || !defined(A_RAW) || !defined(B_PACK) || !defined(B_RAW)
#error "ROWS THREADS COLS VA VB TN UNROLL SPLIT {A,B}_{ALONG_K,PACK,RAW} must be defined"
#endif

#include "common/in_out.glsl"
#include "gemm/operands.glsl"
#if SPLIT > 1
#include "common/arrival.glsl"
#endif

#define KL (THREADS / COLS)  // lanes along K
#if B_ALONG_K
#define CT TN          // columns of a thread: VB elements of one column in a load
#define K_OF(u) ((u) * KL * VB)  // of a thread's load, from its first one on
#if VA != VB || A_ALONG_K == 0
#error "where B is contiguous along K, A is read along with it"
#endif
#else
#define CT VB     // VB columns of one K in a load
// VA neighbours in K, which one load of A serves; lanes side by side, so that workgroups walk
// through B together.
#define K_OF(u) ((u) / VA * (KL * VA) + (u) % VA)
#if UNROLL % VA != 0 || (A_ALONG_K == 0 && VA != 1) || TN != 1
#error "VA divides UNROLL, and is 1 where A is not contiguous along K; TN is 1"
#endif
#endif
#define WIDTH (COLS * CT)

#if ROWS < 1 || THREADS % COLS != 0 || THREADS < WIDTH || SPLIT < 1
#error "ROWS and SPLIT are at least 1; COLS divides THREADS, which are at least WIDTH"
#endif

layout(local_size_x = THREADS) in;

#define SUMS (ROWS * CT)  // of a thread

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

shared float lane_sums[KL * WIDTH];  // of one row
shared float part_sums[PARTS * WIDTH];

float sum[SUMS];
B_RAW b_raw[UNROLL * TN];

uint64_t a_address(uint row, uint k) {
  const uint64_t at = A_ALONG_K != 0 ? uint64_t(row) * args.k + k : uint64_t(k) * args.m + row;
  return args.a + at * IN_BYTES;
}

// Elements of A that meet load u: VA of one row from k on, or zeros past the end.
void load_a(uint row, uint k, uint k_end, out float e[VA]) {
  A_RAW raw = A_RAW(0);
  if (k < k_end) raw = A_RAW(A_PACK(a_address(row, k)).v);
  unpack(raw, e);
}

// B's elements from (k, col) on; zeros past the end of K.
void load_b(uint64_t column, uint k, uint k_end) {
  const uint64_t stride = uint64_t(B_ALONG_K != 0 ? 1 : args.n) * IN_BYTES;
  const uint64_t next = uint64_t(args.k) * IN_BYTES;  // column, where a thread has several
  const uint64_t first = column + k * stride;
  if (k + K_OF(UNROLL - 1) < k_end) {
    [[unroll]] for (uint i = 0; i < UNROLL * TN; ++i)
      b_raw[i] = B_RAW(B_PACK(first + i % TN * next + K_OF(i / TN) * stride).v);
  } else {
    [[unroll]] for (uint i = 0; i < UNROLL * TN; ++i) {
      b_raw[i] = B_RAW(0);
      if (k + K_OF(i / TN) < k_end)
        b_raw[i] = B_RAW(B_PACK(first + i % TN * next + K_OF(i / TN) * stride).v);
    }
  }
}

void accumulate(uint k, uint k_end) {
#if B_ALONG_K
  [[unroll]] for (uint u = 0; u < UNROLL; ++u) {
    [[unroll]] for (uint row = 0; row < ROWS; ++row) {
      float a[VA];
      load_a(row, k + K_OF(u), k_end, a);
      [[unroll]] for (uint c = 0; c < TN; ++c) {
        float b[VB];
        unpack(b_raw[u * TN + c], b);
        [[unroll]] for (uint j = 0; j < VB; ++j)
          sum[row * TN + c] = fma(a[j], b[j], sum[row * TN + c]);
      }
    }
  }
#else
  [[unroll]] for (uint row = 0; row < ROWS; ++row) {
    [[unroll]] for (uint u = 0; u < UNROLL; u += VA) {
      float a[VA];
      load_a(row, k + K_OF(u), k_end, a);
      [[unroll]] for (uint v = 0; v < VA; ++v) {
        float b[VB];
        unpack(b_raw[u + v], b);
        [[unroll]] for (uint j = 0; j < VB; ++j)
          sum[row * CT + j] = fma(a[v], b[j], sum[row * CT + j]);
      }
    }
  }
#endif
}

// Adds the lanes' sums of one row: the first WIDTH threads get the totals of the columns.
float add_lanes(uint row, uint lane, uint column) {
  const uint tid = gl_LocalInvocationIndex;
  [[unroll]] for (uint j = 0; j < CT; ++j)
    lane_sums[lane * WIDTH + column * CT + j] = sum[row * CT + j];
  barrier();
  [[dont_unroll]] for (uint i = tid; i < PARTS * WIDTH; i += THREADS) {
    float part = 0.0;
    [[dont_unroll]] for (uint l = i / WIDTH; l < KL; l += PARTS)
      part += lane_sums[l * WIDTH + i % WIDTH];
    part_sums[i] = part;
  }
  barrier();
  float total = 0.0;
  if (tid < WIDTH) {
    [[unroll]] for (uint p = 0; p < PARTS; ++p) total += part_sums[p * WIDTH + tid];
  }
  return total;
}

void main() {
  if (workgroup() >= args.tiles_n) return;
  const uint tid = gl_LocalInvocationIndex;
#if B_ALONG_K
  const uint lane = tid % KL, column = tid / KL;
  const uint first_k = lane * VB, k_stride = KL * VB * UNROLL;
#else
  const uint lane = tid / COLS, column = tid % COLS;
  const uint first_k = lane * VA, k_stride = KL * UNROLL;
#endif
  const uint col = workgroup() * WIDTH + column * CT;
  // Threads past the last column repeat it and store nothing.
  const uint64_t safe = min(col, args.n - CT);
  const uint64_t b_column = args.b + safe * (B_ALONG_K != 0 ? args.k : 1) * IN_BYTES;
  const uint k_begin = min(gl_WorkGroupID.z * args.slice, args.k);
  const uint k_end = min(k_begin + args.slice, args.k);
  [[unroll]] for (uint e = 0; e < SUMS; ++e) sum[e] = 0.0;

  for (uint k = k_begin + first_k; k < k_end; k += k_stride) {
    load_b(b_column, k, k_end);
    accumulate(k, k_end);
  }
  const uint out_col = workgroup() * WIDTH + tid;
  const bool writes = tid < WIDTH && out_col < args.n;
  [[unroll]] for (uint row = 0; row < ROWS; ++row) {
    const float total = add_lanes(row, lane, column);
    if (writes) {
#if SPLIT > 1
      put_partial(gl_WorkGroupID.z, row, out_col, total);
#else
      put(row, out_col, total);
#endif
    }
  }
#if SPLIT > 1
  if (!last_to_arrive(args.counters + uint64_t(workgroup()) * 4, SPLIT)) return;
  if (!writes) return;
  [[unroll]] for (uint row = 0; row < ROWS; ++row) {
    float total = 0.0;
    [[unroll]] for (uint s = 0; s < SPLIT; ++s) total += get_partial(s, row, out_col);
    put(row, out_col, total);
  }
#endif
}
