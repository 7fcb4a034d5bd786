#version 460
// Few rows (ROWS = m): bound by reading B once. A workgroup covers WIDTH columns; its threads
// divide K among KL lanes, each with UNROLL independent loads of its columns in flight, and then add
// their sums through shared memory in two steps. With SPLIT > 1 the workgroup's z picks a slice of K, and the
// last slice to arrive adds them all, in the order of K whatever the order of arrival. With GATED,
// half of the columns are gates, the others the ups that they are multiplied by. With NORM, A is
// multiplied by its weight as it is loaded, and its squares are one more sum, by which the others are
// scaled in the end.

#if !defined(ROWS) || !defined(THREADS) || !defined(COLS) || !defined(VA) || !defined(VB) || \
    !defined(TN) || !defined(UNROLL) || !defined(SPLIT) || !defined(A_ALONG_K) || !defined(B_ALONG_K) || \
    !defined(A_PACK) || !defined(A_RAW) || !defined(B_PACK) || !defined(B_RAW)
#error "ROWS THREADS COLS VA VB TN UNROLL SPLIT {A,B}_{ALONG_K,PACK,RAW} must be defined"
#endif

#include "common/in_out.glsl"
#include "gemm/operands.glsl"
#include "gemm/groups.glsl"
#if SPLIT > 1
#include "common/arrival.glsl"
#endif

#define KL (THREADS / COLS)  // lanes along K
#if B_ALONG_K
#define CT TN          // columns of a thread: VB elements of one column in a load
#define K_OF(u) ((u) * KL * VB)  // of a thread's load, from its first one on
#if VA != VB
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
#define LINE (WIDTH + NORM)                     // sums of a lane: with NORM that of the squares

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

shared float lane_sums[KL * LINE];  // of one row
shared float part_sums[PARTS * LINE];

float sum[SUMS];
#if NORM
float squares[ROWS];
float some_squares[ROWS];  // of UNROLL loads, so that no sum has many terms
#endif
B_RAW b_raw[UNROLL * TN];

uint64_t a_address(uint row, uint k) {
  const uint64_t at = A_ALONG_K != 0 ? uint64_t(row) * A_LINES + k : uint64_t(k) * A_LINES + row;
  return MATRIX_A + at * IN_BYTES;
}

// Elements of A that meet load u: VA of one row from k on, weighted, or zeros past the end.
void load_a(uint row, uint k, uint k_end, out float e[VA]) {
#if A_ALONG_K || VA == 1
  A_RAW raw = A_RAW(0);
  if (k < k_end) raw = A_RAW(A_PACK(a_address(row, k)).v);
  unpack(raw, e);
#else
  [[unroll]] for (uint j = 0; j < VA; ++j) e[j] = k < k_end ? load_in(a_address(row, k + j)) : 0.0;
#endif
#if NORM
  float w[VA];
  A_RAW weight = A_RAW(0);
  if (k < k_end) weight = A_RAW(A_PACK(args.weight + uint64_t(k) * IN_BYTES).v);
  unpack(weight, w);
  [[unroll]] for (uint j = 0; j < VA; ++j) {
    some_squares[row] = fma(e[j], e[j], some_squares[row]);
    e[j] *= w[j];
  }
#endif
}

// The thread's column c in B, from its first one on, in elements.
uint64_t column_offset(uint c) {
#if B_PANELS  // these are lines of one panel, or with gates of two
  return c / SPAN * uint64_t(args.n) * args.k + c % SPAN * 8;
#elif GATED
  return (c / SPAN * uint64_t(args.n) + c % SPAN) * B_LINES;
#else
  return c * uint64_t(B_LINES);
#endif
}

// B's elements from (k, col) on; zeros past the end of K.
void load_b(uint64_t column, uint k, uint k_end) {
#if B_PANELS
#define PLACE(u) (b_along(k + K_OF(u)) * IN_BYTES)
  const uint64_t first = column;
#else
#define PLACE(u) (K_OF(u) * stride)
  const uint64_t stride = uint64_t(B_ALONG_K != 0 ? 1 : B_LINES) * IN_BYTES;
  const uint64_t first = column + k * stride;
#endif
  if (k + K_OF(UNROLL - 1) < k_end) {
    [[unroll]] for (uint i = 0; i < UNROLL * TN; ++i)
      b_raw[i] = B_RAW(B_PACK(first + column_offset(i % TN) * IN_BYTES + PLACE(i / TN)).v);
  } else {
    [[unroll]] for (uint i = 0; i < UNROLL * TN; ++i) {
      b_raw[i] = B_RAW(0);
      if (k + K_OF(i / TN) < k_end)
        b_raw[i] =
            B_RAW(B_PACK(first + column_offset(i % TN) * IN_BYTES + PLACE(i / TN)).v);
    }
  }
}

void accumulate(uint k, uint k_end) {
#if NORM
  [[unroll]] for (uint row = 0; row < ROWS; ++row) some_squares[row] = 0.0;
#endif
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
#if NORM
  [[unroll]] for (uint row = 0; row < ROWS; ++row) squares[row] += some_squares[row];
#endif
}

// Adds the lanes' sums of one row, and those of its squares.
void add_lanes(uint row, uint lane, uint column) {
  const uint tid = gl_LocalInvocationIndex;
  [[unroll]] for (uint j = 0; j < CT; ++j)
    lane_sums[lane * LINE + column * CT + j] = sum[row * CT + j];
#if NORM
  if (column == 0) lane_sums[lane * LINE + WIDTH] = squares[row];
#endif
  barrier();
  [[dont_unroll]] for (uint i = tid; i < PARTS * LINE; i += THREADS) {
    float part = 0.0;
    [[dont_unroll]] for (uint l = i / LINE; l < KL; l += PARTS)
      part += lane_sums[l * LINE + i % LINE];
    part_sums[i] = part;
  }
  barrier();
}

// The total of the workgroup's column w, or with w = WIDTH of the squares.
float total_of(uint w) {
  float total = 0.0;
  [[unroll]] for (uint p = 0; p < PARTS; ++p) total += part_sums[p * LINE + w];
  return total;
}

#if SPLIT > 1
// Where a slice's total of the workgroup's column w is, as in total_of().
uint partial_column(uint w) {
  if (w == WIDTH) return product_cols() + workgroup();
  const uint col = workgroup() * OUT_WIDTH + w % OUT_WIDTH;
  return w < OUT_WIDTH ? col : args.n + col;
}

void put_partial_total(uint row, uint w) {
  put_partial(gl_WorkGroupID.z, row, partial_column(w), total_of(w));
}

// The total of all slices, added in their order.
float finished_total(uint row, uint w) {
  float total = 0.0;
  [[unroll]] for (uint s = 0; s < SPLIT; ++s) total += get_partial(s, row, partial_column(w));
  return total;
}
#else
float finished_total(uint, uint w) { return total_of(w); }
#endif

// Finishes this thread's element of C in a row.
void finish(uint row, uint col) {
  const uint w = gl_LocalInvocationIndex;
#if NORM
  const float factor = norm_factor(finished_total(row, WIDTH));
#else
  const float factor = 1.0;
#endif
#if GATED
  put(row, col, finished_total(row, w) * factor, finished_total(row, OUT_WIDTH + w) * factor);
#else
  put(row, col, finished_total(row, w) * factor);
#endif
}

void main() {
  if (workgroup() >= args.tiles_m * args.tiles_n) return;
  // The workgroup's number among those of its product.
  const uint group = GROUPED != 0 ? workgroup() % args.tiles_n : workgroup();
  uint first_row = GROUPED != 0 ? workgroup() / args.tiles_n * ROWS : 0;
  enter_group(ROWS, first_row);
  const uint tid = gl_LocalInvocationIndex;
#if NEIGHBOURS_ALONG_K
  const uint lane = tid % KL, column = tid / KL;
#else
  const uint lane = tid / COLS, column = tid % COLS;
#endif
  const uint first_k = lane * VA, k_stride = KL * UNROLL * (B_ALONG_K != 0 ? VB : 1);
  // Threads past the last column repeat it and store nothing.
#if GATED
  const uint half_ = column * CT / OUT_WIDTH, in_half = column * CT % OUT_WIDTH;
  const uint64_t safe =
      min(group * OUT_WIDTH + in_half, args.n - SPAN) + half_ * uint64_t(args.n);
#else
  const uint64_t safe = min(group * WIDTH + column * CT, args.n - CT);
#endif
  const uint64_t b_column = MATRIX_B + b_line(safe) * IN_BYTES;
  const uint k_begin = min(gl_WorkGroupID.z * args.slice, args.k);
  const uint k_end = min(k_begin + args.slice, args.k);
  [[unroll]] for (uint e = 0; e < SUMS; ++e) sum[e] = 0.0;
#if NORM
  [[unroll]] for (uint row = 0; row < ROWS; ++row) squares[row] = 0.0;
#endif

  for (uint k = k_begin + first_k; k < k_end; k += k_stride) {
    load_b(b_column, k, k_end);
    accumulate(k, k_end);
  }
  const uint out_col = group * OUT_WIDTH + tid;
  const bool writes = tid < OUT_WIDTH && out_col < args.n;
  [[unroll]] for (uint row = 0; row < ROWS; ++row) {
    add_lanes(row, lane, column);
    if (writes) {
#if SPLIT > 1
      put_partial_total(row, tid);
#if GATED
      put_partial_total(row, OUT_WIDTH + tid);
#endif
#if NORM
      if (tid == 0) put_partial_total(row, WIDTH);
#endif
#else
      finish(row, out_col);
#endif
    }
  }
#if SPLIT > 1
  if (!last_to_arrive(args.counters + uint64_t(workgroup()) * 4, SPLIT)) return;
  if (!writes) return;
  [[unroll]] for (uint row = 0; row < ROWS; ++row) finish(row, out_col);
#endif
}
