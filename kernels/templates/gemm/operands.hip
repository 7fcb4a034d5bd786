// The arguments of every GEMM kernel, and how a sum becomes an element of C:
// C = act(alpha * sum + bias[col] + residual[row, col] + beta * C), or with GATED
// C = act(alpha * sum + bias[col]) * (alpha * up + bias[n + col]), where `up` is the sum of column
// n + col of the product. Tiles have the gate and the up of a column side by side: their column 2 c
// is the gate of column c, and 2 c + 1 its up.
#pragma once

#if !defined(IN_F16) || !defined(IN_BF16) || !defined(OUT_F16) || !defined(OUT_BF16) || \
    !defined(HAS_BIAS) || !defined(HAS_RESIDUAL) || !defined(ACTIVATION) || !defined(STORE_VEC)
#error "{IN,OUT}_{F16,BF16}, HAS_BIAS, HAS_RESIDUAL, ACTIVATION and STORE_VEC must be defined"
#endif
#if !defined(GATED) || !defined(NORM)
#error "GATED and NORM must be defined"
#endif
#if GATED && (ACTIVATION == 0 || HAS_RESIDUAL)
#error "gates have an activation and no residual"
#endif
#if STORE_VEC != 1 && STORE_VEC != 4
#error "STORE_VEC is 1, or 4 where n and the places of C's lines are multiples of 4"
#endif
#if ACTIVATION < 0 || ACTIVATION > 2
#error "ACTIVATION is 0 (none), 1 (silu) or 2 (gelu)"
#endif

#if !defined(GROUPED) || GROUPED < 0 || GROUPED > 3 || (GROUPED % 3 != 0 && NORM)
#error "GROUPED is 0, 3 (batch), or without norms 1 (contiguous) or 2 (masked)"
#endif

#if !defined(LDA) || !defined(LDB) || !defined(LDC) || !defined(A_ALONG_K) || !defined(B_ALONG_K)
#error "{A,B}_ALONG_K and LDA, LDB and LDC must be defined, which are 0 where rows are packed"
#endif

#include "common/activation.hip"
#include "common/in_out.hip"
#if NORM
#include "common/inverse_root.hip"
#endif

struct Arguments {
  const In *a, *b, *weight;    // of k elements with NORM
  const Out *bias, *residual;  // null where there is none
  Out* c;
  float* partial;  // sums of each K slice, slices x m x partial_cols()
  u32* counters;   // slices that are done, one for each tile of gemv; zero
  u32 m, n, k;
  u32 tiles_m, tiles_n;  // workgroup tiles of C
  u32 slice;             // K steps of one slice
  float alpha, beta;
  float epsilon;  // added under the root with NORM
#if GROUPED == 3
  u64 a_batch, b_batch, c_batch;  // elements from one matrix of the batch to the next
#elif GROUPED
  const int* group_rows;  // ends or numbers of rows of the groups
  u32 groups;
#endif
};

#if GROUPED == 3
#define GROUP_PARAMETERS , u64 a_batch, u64 b_batch, u64 c_batch
#define GROUP_ARGUMENTS , a_batch, b_batch, c_batch
#define GEMM_ENTRY(kernel) gemm_##kernel
#elif GROUPED
#define GROUP_PARAMETERS , const int *GRETA_READ group_rows, u32 groups
#define GROUP_ARGUMENTS , group_rows, groups
#define GEMM_ENTRY(kernel) grouped_gemm_##kernel
#else
#define GROUP_PARAMETERS
#define GROUP_ARGUMENTS
#define GEMM_ENTRY(kernel) gemm_##kernel
#endif

// As a kernel's parameters, in the same order; pointers are parameters of their own, so that
// compilers know that they point to global memory.
#define GEMM_PARAMETERS                                                                        \
  const In *GRETA_READ a, const In *GRETA_READ b, const In *GRETA_READ weight,                 \
      const Out *GRETA_READ bias, const Out *GRETA_READ residual, Out *__restrict__ c,         \
      float *partial, u32 *counters, u32 m, u32 n, u32 k, u32 tiles_m, u32 tiles_n, u32 slice, \
      float alpha, float beta, float epsilon GROUP_PARAMETERS
#define GEMM_ARGUMENTS                                                                         \
  Arguments {                                                                                  \
    a, b, weight, bias, residual, c, partial, counters, m, n, k, tiles_m, tiles_n, slice, alpha, \
        beta, epsilon GROUP_ARGUMENTS                                                          \
  }

// Elements from one line of A, B and C to the next; C's is also the residual's. Leading dimensions are
// constants: Vulkan's 128 bytes of arguments have no room for them beside those of a batch.
GRETA_DEVICE u32 stride_a(const Arguments& args) {
  return LDA > 0 ? LDA : A_ALONG_K ? args.k : args.m;
}
GRETA_DEVICE u32 stride_b(const Arguments& args) {
  return LDB > 0 ? LDB : B_ALONG_K ? args.k : GATED ? 2 * args.n : args.n;
}
GRETA_DEVICE u32 stride_c(const Arguments& args) { return LDC > 0 ? LDC : args.n; }

// B lies in panels of 16 lines, in which chunks of 8 elements of all lines at one k follow each other
// (B_PANELS), or line by line. Where line `line` of it begins, and how far after that its element k
// is, in elements.
#if !defined(B_PANELS)
#define B_PANELS 0
#endif
#if B_PANELS && (!A_ALONG_K || !B_ALONG_K || LDB > 0 || !(IN_F16 || IN_BF16))
#error "panels have 16 bits in layout nt without a leading dimension"
#endif
GRETA_DEVICE u64 b_line(const Arguments& args, u64 line) {
#if B_PANELS
  return line / 16 * 16 * args.k + line % 16 * 8;
#else
  return line * (B_ALONG_K ? stride_b(args) : 1);
#endif
}
GRETA_DEVICE u64 b_along(const Arguments& args, u32 k) {
#if B_PANELS
  return u64(k / 8) * 128 + k % 8;
#else
  return u64(k) * (B_ALONG_K ? 1 : stride_b(args));
#endif
}

// Columns of the product.
GRETA_DEVICE u32 product_cols(const Arguments& args) { return GATED ? 2 * args.n : args.n; }
// Elements from the line of a gate in B to that of its up; 0 where lines are no pairs.
GRETA_DEVICE u64 pair_distance(const Arguments& args) {
  return GATED ? u64(args.n) * stride_b(args) : 0;
}

// Neighbouring columns of a product of which a lane computes elements at a time. Where lines of C are
// not aligned, these are as few as possible, so that neighbouring lanes store neighbouring elements.
constexpr u32 unit_columns = STORE_VEC == 4 ? 4 : GATED ? 2 : 1;

// Where an element of C and of the residual is, in elements.
GRETA_DEVICE u64 c_place(const Arguments& args, u32 row, u32 col) {
  return u64(row) * stride_c(args) + col;
}

// Kernels that are made for alpha = 1 need no factor.
GRETA_DEVICE float scaled(const Arguments& args, float sum) {
#if defined(ALPHA_IS_ONE)
  return sum;
#else
  return args.alpha * sum;
#endif
}

GRETA_DEVICE float activate(float x) {
#if ACTIVATION == 1
  return silu(x);
#elif ACTIVATION == 2
  return gelu_tanh(x);
#else
  return x;
#endif
}

#if NORM
// What a sum of products with a row of A is multiplied by; `squares`: the sum of the row's squares.
GRETA_DEVICE float norm_factor(const Arguments& args, float squares) {
  return fast_inverse_sqrt(squares / float(args.k) + args.epsilon);
}
#endif

#if GATED
// alpha * sum + bias of a column of the product.
GRETA_DEVICE float biased(const Arguments& args, u32 col, float sum) {
  float x = args.alpha * sum;
#if HAS_BIAS
  x += to_float(args.bias[col]);
#endif
  return x;
}

GRETA_DEVICE void put(const Arguments& args, u32 row, u32 col, float gate, float up) {
  const float x = activate(biased(args, col, gate)) * biased(args, args.n + col, up);
  args.c[c_place(args, row, col)] = narrow<Out>(x);
}

// Two neighbours of a row of C, or one; `col` counts a tile's columns of gates and ups, which
// alternate. It may lie past the edge.
GRETA_DEVICE void put_unit(const Arguments& args, u32 row, u32 col, const float (&sum)[unit_columns]) {
  const u32 first = col / 2;
  if (first >= args.n) return;
#if STORE_VEC == 4
  float x[2] = {args.alpha * sum[0], args.alpha * sum[2]};
  float up[2] = {args.alpha * sum[1], args.alpha * sum[3]};
#if HAS_BIAS
  const auto bias = load_pack<2>(args.bias + first);
  const auto up_bias = load_pack<2>(args.bias + args.n + first);
  GRETA_UNROLL
  for (int j = 0; j < 2; ++j) {
    x[j] += element(bias, j);
    up[j] += element(up_bias, j);
  }
#endif
  GRETA_UNROLL
  for (int j = 0; j < 2; ++j) x[j] = activate(x[j]) * up[j];
  store_pack(args.c + c_place(args, row, first), narrow_pack<Out>(x));
#else
  put(args, row, first, sum[0], sum[1]);
#endif
}
#else
// `count` neighbours of the residual, or nothing.
#if HAS_RESIDUAL
template <int count>
using Residual = Pack<Out, count>;
template <int count>
GRETA_DEVICE Residual<count> load_residual(const Arguments& args, u32 row, u32 col) {
  return load_pack<count>(args.residual + c_place(args, row, col));
}
#else
template <int count>
struct Residual {};
template <int count>
GRETA_DEVICE Residual<count> load_residual(const Arguments&, u32, u32) {
  return {};
}
#endif

// `count` neighbours of one row, all of them inside C.
template <int count>
GRETA_DEVICE void put_pack(const Arguments& args, u32 row, u32 col, const float (&sum)[count],
                           const Residual<count>& residual) {
  const u64 at = c_place(args, row, col);
  float x[count];
  GRETA_UNROLL
  for (int j = 0; j < count; ++j) x[j] = scaled(args, sum[j]);
#if HAS_BIAS
  const auto bias = load_pack<count>(args.bias + col);
  GRETA_UNROLL
  for (int j = 0; j < count; ++j) x[j] += element(bias, j);
#endif
#if HAS_RESIDUAL
  GRETA_UNROLL
  for (int j = 0; j < count; ++j) x[j] += element(residual, j);
#endif
  if (args.beta != 0.0f) {
    const auto old = load_pack<count>(args.c + at);
    GRETA_UNROLL
    for (int j = 0; j < count; ++j) x[j] += args.beta * element(old, j);
  }
  GRETA_UNROLL
  for (int j = 0; j < count; ++j) x[j] = activate(x[j]);
  store_pack(args.c + at, narrow_pack<Out>(x));
}
template <int count>
GRETA_DEVICE void put_pack(const Arguments& args, u32 row, u32 col, const float (&sum)[count]) {
  put_pack(args, row, col, sum, load_residual<count>(args, row, col));
}

GRETA_DEVICE void put(const Arguments& args, u32 row, u32 col, float sum) {
  const float one[1] = {sum};
  put_pack(args, row, col, one);
}

// Neighbours of one row; `col` may lie past the edge.
GRETA_DEVICE void put_unit(const Arguments& args, u32 row, u32 col, const float (&sum)[unit_columns]) {
  if (col < args.n) put_pack(args, row, col, sum);
}
#endif

// Calls use(col, sums) for the units of four neighbours of a row; `col` is a multiple of 4.
template <typename Use>
GRETA_DEVICE void each_unit(u32 col, const float (&sum)[4], Use use) {
  GRETA_UNROLL
  for (u32 first = 0; first < 4; first += unit_columns) {
    float unit[unit_columns];
    GRETA_UNROLL
    for (u32 j = 0; j < unit_columns; ++j) unit[j] = sum[first + j];
    use(col + first, unit);
  }
}
GRETA_DEVICE void put4(const Arguments& args, u32 row, u32 col, const float (&sum)[4]) {
  each_unit(col, sum, [&](u32 first, const float(&unit)[unit_columns]) {
    put_unit(args, row, first, unit);
  });
}

// The residual of a unit, or of four neighbours of a row in units, which may be loaded before others are
// stored. Nothing is loaded past the edges.
#if HAS_RESIDUAL
struct UnitResidual {
  Residual<unit_columns> pack;

  GRETA_DEVICE void load(const Arguments& args, u32 row, u32 col) {
    pack = {};
    if (row < args.m && col < args.n) pack = load_residual<unit_columns>(args, row, col);
  }
};
GRETA_DEVICE void put_unit(const Arguments& args, u32 row, u32 col, const float (&sum)[unit_columns],
                           const UnitResidual& residual) {
  if (col < args.n) put_pack(args, row, col, sum, residual.pack);
}
#else
struct UnitResidual {
  GRETA_DEVICE void load(const Arguments&, u32, u32) {}
};
GRETA_DEVICE void put_unit(const Arguments& args, u32 row, u32 col, const float (&sum)[unit_columns],
                           const UnitResidual&) {
  put_unit(args, row, col, sum);
}
#endif
struct Residual4 {
  UnitResidual unit[4 / unit_columns];

  GRETA_DEVICE void load(const Arguments& args, u32 row, u32 col) {
    GRETA_UNROLL
    for (u32 i = 0; i < 4 / unit_columns; ++i) unit[i].load(args, row, col + i * unit_columns);
  }
};
GRETA_DEVICE void put4(const Arguments& args, u32 row, u32 col, const float (&sum)[4],
                       const Residual4& residual) {
  each_unit(col, sum, [&](u32 first, const float(&unit)[unit_columns]) {
    put_unit(args, row, first, unit, residual.unit[(first - col) / unit_columns]);
  });
}

// Columns of the partial sums: with NORM, each tile of gemv has one more than the product for its
// sum of squares.
GRETA_DEVICE u32 partial_cols(const Arguments& args) {
  return product_cols(args) + (NORM ? args.tiles_n : 0);
}

// Where a K slice's share of a sum is in the workspace.
GRETA_DEVICE float* partial_sum(const Arguments& args, u32 slice, u32 row, u32 col) {
  return args.partial + (u64(slice) * args.m + row) * partial_cols(args) + col;
}

GRETA_DEVICE void put_partial_unit(const Arguments& args, u32 slice, u32 row, u32 col,
                                   const float (&sum)[unit_columns]) {
  if (col < product_cols(args)) store_pack(partial_sum(args, slice, row, col), narrow_pack<float>(sum));
}
GRETA_DEVICE void put_partial4(const Arguments& args, u32 slice, u32 row, u32 col,
                               const float (&sum)[4]) {
  each_unit(col, sum, [&](u32 first, const float(&unit)[unit_columns]) {
    put_partial_unit(args, slice, row, first, unit);
  });
}
