#version 460
// codes = y / scale, y = x, or with FUSED a norm of x, an RMS norm of x + residual, or
// silu(gate) * up.
//
// SCALES: 0, one given scale; 1, of each row; 2, of 128 columns of a row; 3, of 32 columns of a row,
// powers of two as bytes e8m0. KIND says how a row is walked by LANES threads of the workgroup's, each
// of which has ITEMS vectors of VEC neighbours at a time:
//   HELD      it stays in registers
//   STREAMED  it is read once for each statistic, and to write
//   FLAT      a workgroup has a part of a row, whose statistics need no other part
#if !defined(KIND) || !defined(ROWS) || !defined(FUSED) || !defined(SCALES) || \
    !defined(PACKED) || !defined(WEIGHT) || !defined(BIAS) || !defined(X_STRIDE) || \
    !defined(Q_STRIDE) || !defined(SUBGROUP)
#error "KIND, ROWS, FUSED, SCALES, PACKED, WEIGHT, BIAS, {X,Q}_STRIDE and SUBGROUP must be defined"
#endif

#define HELD 0
#define STREAMED 1
#define FLAT 2
#define RMSNORM 1
#define LAYERNORM 2
#define ADD_RMSNORM 3
#define SILU_MUL 4
#define NORM (FUSED >= RMSNORM && FUSED <= ADD_RMSNORM)
#define WHOLE 0  // rows may end among the threads' vectors
#define LANES (THREADS / ROWS)
#define CHUNK (LANES * ITEMS * VEC)  // columns that a row's threads have at a time

#if KIND < HELD || KIND > FLAT || FUSED < 0 || FUSED > SILU_MUL || SCALES < 0 || SCALES > 3
#error "KIND is 0 to 2, FUSED 0 to 4, SCALES 0 to 3"
#endif
#if ROWS < 1 || THREADS % ROWS != 0 || (THREADS & (THREADS - 1)) != 0
#error "THREADS is a power of 2, and ROWS divides it"
#endif
#if KIND == FLAT && (ROWS != 1 || NORM || SCALES == 1)
#error "a part of a row knows neither its norm nor its scale"
#endif
#if SCALES == 3
#define SCALE_BLOCK 32
#else
#define SCALE_BLOCK 128
#endif
#if SCALES >= 2 && LANES * VEC < SCALE_BLOCK
#error "a row's threads have at least the columns of a scale at a time"
#endif
#if SCALES == 3 && FORMAT > 1 && FORMAT != 5 || SCALES != 3 && FORMAT == 5
#error "microscaling formats are e4m3, e5m2 and e2m1"
#endif
#if VEC < 4
#error "codes are stored in words of four"
#endif
#if PACKED && FUSED != SILU_MUL
#error "gate and up are PACKED"
#endif
#if WEIGHT && !NORM || BIAS && FUSED != LAYERNORM || NORM && FUSED != LAYERNORM && !WEIGHT
#error "norms have a WEIGHT, layer norms may have none, or also a BIAS"
#endif

#if SUBGROUP > 0
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#endif
#include "common/elementwise.glsl"
#include "common/activation.glsl"
#include "common/values.glsl"
#include "quantize/codes.glsl"
#include "quantize/reduce_runs.glsl"

layout(push_constant, std430) uniform Arguments {
  uint64_t x, other, weight, bias;  // other: residual, or up
  uint64_t scales, sum, codes;
  uint rows, cols;
  uint parts;  // FLAT: of a row
  float epsilon;
} args;

// The row of this thread's.
uint row;
bool inside;

#if FUSED == LAYERNORM
#include "common/mean_variance.glsl"
#define REDUCED Statistic
#include "common/reduce.glsl"
#endif

uint column(uint first, uint item) { return first + (item * LANES + thread_index() % LANES) * VEC; }
uint64_t start() {
  return uint64_t(row) * (X_STRIDE > 0 ? uint(X_STRIDE) : (1 + PACKED) * args.cols);
}

// How many of this thread's vectors from column `first` on lie inside the row.
uint vectors_inside(uint first) {
  const uint mine = column(first, 0);
  return mine < args.cols ? min(ITEMS, (args.cols - mine - 1) / (LANES * VEC) + 1) : 0;
}

// Columns from `first` on; 0 past the row's end.
void load(uint first, out float x[ITEMS][VEC]) {
  X_RAW raw[ITEMS], other[ITEMS];
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    raw[i] = X_RAW(0);
    other[i] = X_RAW(0);
    const uint col = column(first, i);
    if (col < args.cols) {
      raw[i] = load_vector(args.x + (start() + col) * IN_BYTES);
#if PACKED
      other[i] = load_vector(args.x + (start() + args.cols + col) * IN_BYTES);
#elif FUSED >= ADD_RMSNORM
      other[i] = load_vector(args.other + (start() + col) * IN_BYTES);
#endif
    }
  }
#if FUSED == LAYERNORM
  const float origin = load_in(args.x + start() * IN_BYTES);
#endif
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    float a[VEC], b[VEC];
    unpack(raw[i], a);
    unpack(other[i], b);
    [[unroll]] for (uint j = 0; j < VEC; ++j) {
#if FUSED == LAYERNORM
      x[i][j] = column(first, i) < args.cols ? a[j] - origin : 0.0;
#elif FUSED == ADD_RMSNORM
      x[i][j] = a[j] + b[j];
#elif FUSED == SILU_MUL
      x[i][j] = silu(a[j]) * b[j];
#else
      x[i][j] = a[j];
#endif
    }
  }
}

void store_sums(uint first, float x[ITEMS][VEC]) {
#if FUSED == ADD_RMSNORM
  if (!inside) return;
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    const uint col = column(first, i);
    if (col < args.cols) store_floats(args.sum + (start() + col) * OUT_BYTES, x[i]);
  }
#endif
}

// A norm's statistic, and what elements are multiplied by before they get their weights. In a layer
// norm, `mean` is taken from them first.
struct Factors {
  float mean, factor;
};

#if FUSED == LAYERNORM
Statistic statistic_of(uint first, float x[ITEMS][VEC]) { return gather(x, vectors_inside(first)); }

Factors factors(Statistic own) {
  const Statistic row = reduce_threads(own, 0);
  return Factors(row.mean, inversesqrt(row.squares / float(args.cols) + args.epsilon));
}
#elif NORM
struct Statistic {
  float squares;  // their sum
};

Statistic nothing() { return Statistic(0.0); }
Statistic merge(Statistic a, Statistic b) { return Statistic(a.squares + b.squares); }
Statistic statistic_of(uint first, float x[ITEMS][VEC]) { return Statistic(sum_of_squares(x)); }

Factors factors(Statistic own) {
  const float squares = uintBitsToFloat(reduce_run(floatBitsToUint(own.squares), LANES, true));
  return Factors(0.0, inversesqrt(squares / float(args.cols) + args.epsilon));
}
#endif

void normalise(uint first, inout float x[ITEMS][VEC], Factors f) {
#if NORM
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    const uint col = column(first, i);
    X_RAW weight = X_RAW(0), bias = X_RAW(0);
#if WEIGHT
    if (col < args.cols) weight = load_vector(args.weight + uint64_t(col) * IN_BYTES);
#endif
#if BIAS
    if (col < args.cols) bias = load_vector(args.bias + uint64_t(col) * IN_BYTES);
#endif
    float w[VEC], b[VEC];
    unpack(weight, w);
    unpack(bias, b);
    [[unroll]] for (uint j = 0; j < VEC; ++j) {
#if FUSED == LAYERNORM
      x[i][j] = col < args.cols ? (x[i][j] - f.mean) * f.factor : 0.0;
#else
      x[i][j] *= f.factor;
#endif
#if WEIGHT
      x[i][j] *= w[j];
#endif
#if BIAS
      x[i][j] += b[j];
#endif
    }
  }
#endif
}

uint most_of(float x[VEC]) {
  uint most = 0;
  [[unroll]] for (uint j = 0; j < VEC; ++j) most = max(most, counted_size(x[j]));
  return most;
}

#if SCALES == 3
layout(buffer_reference, std430, buffer_reference_align = 4) coherent buffer SharedWord { uint v; };

// Not every driver stores single bytes. The other bytes of the word, which other threads store, stay as
// they are.
void store_byte(uint64_t at, uint byte) {
  SharedWord word = SharedWord(at & ~uint64_t(3));
  const uint shift = (uint(at) & 3u) * 8;
  atomicAnd(word.v, ~(255u << shift));
  atomicOr(word.v, byte << shift);
}
#endif

// `scale`: of all of these columns, unless blocks have their own.
void store(uint first, float x[ITEMS][VEC], float scale) {
  const uint64_t codes = uint64_t(row) * (Q_STRIDE > 0 ? uint(Q_STRIDE) : args.cols / CODES_OF_BYTE);
  float inverse = 1.0 / scale;
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    const uint col = column(first, i);
#if SCALES >= 2
    const uint most = reduce_run(most_of(x[i]), SCALE_BLOCK / VEC, false);
    const bool first_of_scale = inside && col < args.cols && col % SCALE_BLOCK == 0;
    const uint64_t place =
        uint64_t(row) * ((args.cols - 1) / SCALE_BLOCK + 1) + col / SCALE_BLOCK;
#if SCALES == 3
    const uint stored = power_code_of(most);
    inverse = inverse_power(stored);
    if (first_of_scale) store_byte(args.scales + place, stored);
#else
    scale = scale_of(most);
    inverse = 1.0 / scale;
    if (first_of_scale) F32(args.scales + place * 4).v = scale;
#endif
#endif
    if (inside && col < args.cols) {
      float y[VEC];
      [[unroll]] for (uint j = 0; j < VEC; ++j) y[j] = finite(x[i][j]) * inverse;
      store_codes(args.codes + codes + col / CODES_OF_BYTE, y);
    }
  }
}

void quantize_row(uint first) {
  float x[ITEMS][VEC];
  Factors f = Factors(0.0, 0.0);
#if KIND != STREAMED
  load(first, x);
  store_sums(first, x);
#if NORM
  f = factors(statistic_of(first, x));
#endif
  normalise(first, x, f);
#elif NORM
  Statistic own = nothing();
  [[dont_unroll]] for (uint at = 0; at < args.cols; at += CHUNK) {
    load(at, x);
    store_sums(at, x);
    own = merge(own, statistic_of(at, x));
  }
  f = factors(own);
#endif
  float scale = 1.0;
#if SCALES == 0
  scale = at_least_normal(F32(args.scales).v);
#elif SCALES == 1
  uint most = 0;
#if KIND == STREAMED
  [[dont_unroll]] for (uint at = 0; at < args.cols; at += CHUNK) {
    load(at, x);
    normalise(at, x, f);
#endif
    [[unroll]] for (uint i = 0; i < ITEMS; ++i) most = max(most, most_of(x[i]));
#if KIND == STREAMED
  }
#endif
  scale = scale_of(reduce_run(most, LANES, false));
  if (inside && thread_index() % LANES == 0) F32(args.scales + uint64_t(row) * 4).v = scale;
#endif
#if KIND == STREAMED
  [[dont_unroll]] for (uint at = 0; at < args.cols; at += CHUNK) {
    load(at, x);
    normalise(at, x, f);
    store(at, x, scale);
  }
#else
  store(first, x, scale);
#endif
}

void main() {
  const uint group = workgroup();
#if KIND == FLAT
  if (group >= args.rows * args.parts) return;
  row = group / args.parts;
  inside = true;
  quantize_row(group % args.parts * CHUNK);
#else
  if (group >= (args.rows - 1) / ROWS + 1) return;
  const uint mine = group * ROWS + thread_index() / LANES;
  row = min(mine, args.rows - 1);
  inside = mine < args.rows;
  quantize_row(0);
#endif
}
