// The arguments of every GEMM kernel, and how a sum becomes an element of C:
// C = act(alpha * sum + bias[col] + residual[row, col] + beta * C), or with GATED
// C = act(alpha * sum + bias[col]) * (alpha * up + bias[n + col]), where `up` is the sum of column
// n + col of the product. Tiles have the gate and the up of a column side by side: their column 2 c
// is the gate of column c, and 2 c + 1 its up.

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

layout(push_constant, std430) uniform Arguments {
  uint64_t a, b, weight;       // addresses; of k weights with NORM
  uint64_t bias, residual, c;  // bias and residual are 0 where there is none
  uint64_t partial;            // f32 sums of each K slice, slices x m x partial_cols()
  uint64_t counters;           // slices that are done, one for each tile of gemv; zero
  uint m, n, k;
  uint tiles_m, tiles_n;  // workgroup tiles of C
  uint slice;             // K steps of one slice
  float alpha, beta;
  float epsilon;  // added under the root with NORM
#if GROUPED == 3
  uint64_t a_batch, b_batch, c_batch;  // elements from one matrix of the batch to the next
#elif GROUPED
  uint64_t group_rows;  // ends or numbers of rows of the groups, i32
  uint groups;
#endif
} args;

// Elements from one line of A, B and C to the next; C's is also the residual's.
#define A_LINES (LDA > 0 ? LDA : A_ALONG_K != 0 ? args.k : args.m)
#define B_LINES (LDB > 0 ? LDB : B_ALONG_K != 0 ? args.k : product_cols())
#define C_LINES (LDC > 0 ? LDC : args.n)

// Columns of the product.
uint product_cols() { return GATED != 0 ? 2 * args.n : args.n; }

// Elements from an operand's first line to line `line`. Where lines are pairs, those of B alternate
// between gates and ups.
uint64_t line_place(bool pairs, uint line, uint stride) {
  return pairs ? (line / 2 + line % 2 * uint64_t(args.n)) * stride : uint64_t(line) * stride;
}

// B lies in panels of 16 lines, in which chunks of 8 elements of all lines at one k follow each other
// (B_PANELS), or line by line. Where line `line` of it begins, and how far after that its element k
// is, in elements.
#if !defined(B_PANELS)
#define B_PANELS 0
#endif
#if B_PANELS && (!A_ALONG_K || !B_ALONG_K || !(IN_F16 || IN_BF16))
#error "panels have 16 bits in layout nt"
#endif
uint64_t b_line(uint64_t line) {
#if B_PANELS
  return line / 16 * 16 * args.k + uint(line) % 16 * 8;
#else
  return line * (B_ALONG_K != 0 ? B_LINES : 1);
#endif
}
// The same of a tile's line; `pairs`: these alternate between gates and ups.
uint64_t panel_place(bool pairs, uint line) {
  return b_line(pairs ? line / 2 + line % 2 * uint64_t(args.n) : uint64_t(line));
}
uint64_t b_along(uint k) {
#if B_PANELS
  return uint64_t(k / 8) * 128 + k % 8;
#else
  return k * uint64_t(B_ALONG_K != 0 ? 1 : B_LINES);
#endif
}

// The matrices and rows of the product: with GROUPED those of the current group (groups.glsl).
#if GROUPED
uint64_t group_a, group_b, group_c, group_residual;
uint group_m;
#define MATRIX_A group_a
#define MATRIX_B group_b
#define MATRIX_C group_c
#define RESIDUAL group_residual
#define ROWS_M group_m
#else
#define MATRIX_A args.a
#define MATRIX_B args.b
#define MATRIX_C args.c
#define RESIDUAL args.residual
#define ROWS_M args.m
#endif

#include "common/load_out.glsl"

// x * sigmoid(t). The exponent is capped so that no driver divides by infinity.
vec4 gate(vec4 x, vec4 t) { return x / (1.0 + exp(min(-t, vec4(80.0)))); }

vec4 activate(vec4 x) {
#if ACTIVATION == 1
  return gate(x, x);
#elif ACTIVATION == 2
  // The tanh form: x/2 (1 + tanh u) = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3).
  return gate(x, 1.5957691216057308 * x * (1.0 + 0.044715 * x * x));
#else
  return x;
#endif
}

// Where an element of C is, in elements; 64 bits.
uint64_t element(uint row, uint col) { return uint64_t(row) * C_LINES + col; }

#if NORM
// What a sum of products with a row of A is multiplied by; `squares`: the sum of the row's squares.
float norm_factor(float squares) {
  return inversesqrt(squares / float(args.k) + args.epsilon);
}
#endif

#if GATED
// alpha * sum + bias of a column of the product.
float biased(uint col, float sum) {
  float x = args.alpha * sum;
#if HAS_BIAS
  x += load_out(args.bias + uint64_t(col) * OUT_BYTES);
#endif
  return x;
}

void put(uint row, uint col, float gate, float up) {
  const float x = activate(vec4(biased(col, gate))).x * biased(args.n + col, up);
  store_out(MATRIX_C + element(row, col) * OUT_BYTES, x);
}

// Two neighbours of a row of C; `col` is a multiple of 4 and counts a tile's columns of gates and
// ups, which alternate. It may lie past the edge.
void put4(uint row, uint col, vec4 sum) {
  if (col / 2 < args.n) put(row, col / 2, sum.x, sum.y);
  if (col / 2 + 1 < args.n) put(row, col / 2 + 1, sum.z, sum.w);
}
#else
void put(uint row, uint col, float sum) {
  const uint64_t at = element(row, col);
  float x = args.alpha * sum;
#if HAS_BIAS
  x += load_out(args.bias + uint64_t(col) * OUT_BYTES);
#endif
#if HAS_RESIDUAL
  x += load_out(RESIDUAL + at * OUT_BYTES);
#endif
  const uint64_t c = MATRIX_C + at * OUT_BYTES;
  if (args.beta != 0.0) x += args.beta * load_out(c);
  store_out(c, activate(vec4(x)).x);
}

// Four neighbours of one row; `col` is a multiple of 4 and may lie past the edge.
void put4(uint row, uint col, vec4 sum) {
#if STORE_VEC == 4
  if (col < args.n) {
    const uint64_t at = element(row, col);
    vec4 x = args.alpha * sum;
#if HAS_BIAS
    x += load_out4(args.bias + uint64_t(col) * OUT_BYTES);
#endif
#if HAS_RESIDUAL
    x += load_out4(RESIDUAL + at * OUT_BYTES);
#endif
    const uint64_t c = MATRIX_C + at * OUT_BYTES;
    if (args.beta != 0.0) x += args.beta * load_out4(c);
    store_out4(c, activate(x));
  }
#else
  [[unroll]] for (uint j = 0; j < 4; ++j) {
    if (col + j < args.n) put(row, col + j, sum[j]);
  }
#endif
}
#endif

// Columns of the partial sums: with NORM, each tile of gemv has one more than the product for its
// sum of squares.
uint partial_cols() { return product_cols() + (NORM != 0 ? args.tiles_n : 0); }

// The same for one K slice's share of the sum, into the workspace, where other workgroups see it.
layout(buffer_reference, std430, buffer_reference_align = 4) coherent buffer Partial { float v; };

uint64_t partial_sum(uint slice, uint row, uint col) {
  return args.partial + ((uint64_t(slice) * args.m + row) * partial_cols() + col) * 4;
}
void put_partial(uint slice, uint row, uint col, float sum) {
  Partial(partial_sum(slice, row, col)).v = sum;
}
float get_partial(uint slice, uint row, uint col) {
  return Partial(partial_sum(slice, row, col)).v;
}

void put_partial4(uint slice, uint row, uint col, vec4 sum) {
#if STORE_VEC == 4
  if (col < product_cols()) F32x4(partial_sum(slice, row, col)).v = sum;
#else
  [[unroll]] for (uint j = 0; j < 4; ++j) {
    if (col + j < product_cols()) put_partial(slice, row, col + j, sum[j]);
  }
#endif
}
