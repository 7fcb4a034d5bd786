// codes = y / scale, y = x, or with FUSED a norm of x, an RMS norm of x + residual, or
// silu(gate) * up.
//
// SCALES: 0, one given scale; 1, of each row; 2, of 128 columns of a row; 3, of 32 columns of a row,
// powers of two as bytes e8m0. KIND says how a row is walked by LANES threads of the block's, each of
// which has ITEMS vectors of VEC neighbours at a time:
//   HELD      it stays in registers
//   STREAMED  it is read once for each statistic, and to write
//   FLAT      a block has a part of a row, whose statistics need no other part
#if !defined(KIND) || !defined(ROWS) || !defined(FUSED) || !defined(SCALES) || \
    !defined(PACKED) || !defined(WEIGHT) || !defined(BIAS) || !defined(X_STRIDE) || \
    !defined(Q_STRIDE)
#error "KIND, ROWS, FUSED, SCALES, PACKED, WEIGHT, BIAS and {X,Q}_STRIDE must be defined"
#endif

#define HELD 0
#define STREAMED 1
#define FLAT 2
#define RMSNORM 1
#define LAYERNORM 2
#define ADD_RMSNORM 3
#define SILU_MUL 4
#define NORM (FUSED >= RMSNORM && FUSED <= ADD_RMSNORM)
// Rows may end among the threads' vectors.
#define WHOLE 0
#define SURE 0
#define LANES (THREADS / ROWS)

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
#if SCALES == 3 ? FORMAT > 1 && FORMAT != 5 : FORMAT == 5
#error "microscaling formats are e4m3, e5m2 and e2m1"
#endif
#if VEC < 4
#error "codes are stored in words of four"
#endif
#if PACKED && FUSED != SILU_MUL
#error "gate and up are PACKED"
#endif
#if (WEIGHT && !NORM) || (BIAS && FUSED != LAYERNORM) || (NORM && FUSED != LAYERNORM && !WEIGHT)
#error "norms have a WEIGHT, layer norms may have none, or also a BIAS"
#endif

#include "common/activation.hip"
#include "common/affine.hip"
#include "common/inverse_root.hip"
#include "common/mean_variance.hip"
#include "quantize/codes.hip"

constexpr u32 chunk = LANES * ITEMS * VEC;  // columns that a row's threads have at a time
constexpr u32 waves = THREADS / wave_size;

#if SCALES == 3
typedef u8 Scale;
#else
typedef float Scale;
#endif

struct Arguments {
  const In *x, *other, *weight, *bias;  // other: residual, or up
  Scale* scales;
  In* sum;
  u8* codes;
  u32 rows, cols;
  u32 parts;  // FLAT: of a row
  float epsilon;
};

// What a norm needs to know of a row: its moments, or the sum of its squares.
#if FUSED == LAYERNORM
typedef Moments Statistic;
struct Merge {
  GRETA_DEVICE Statistic operator()(const Statistic& a, const Statistic& b) const {
    return merge_moments(a, b);
  }
};
#else
typedef float Statistic;
typedef Add Merge;
#endif

// Of an element and its weight: times `factor`, and then in a layer norm plus `shift`.
struct Factors {
  float factor, shift;
};

// Of the block, which reductions over more than a wave need.
struct Shared {
  u32* sizes;
  Statistic* statistics;
};

template <u32 run, typename T, typename Merge>
GRETA_DEVICE T reduce_run(T value, Merge merge, T* shared) {
  if constexpr (run > wave_size) block_barrier();  // it may still be read
  return reduce_threads<run>(value, merge, shared);
}

// A row of this thread's.
struct Row {
  const Arguments& args;
  u32 row;
  bool inside;

  GRETA_DEVICE u32 column(u32 first, u32 item) const {
    return first + (item * LANES + thread_index() % LANES) * VEC;
  }
  GRETA_DEVICE u64 start() const {
    return u64(row) * (X_STRIDE > 0 ? u32(X_STRIDE) : (1 + PACKED) * args.cols);
  }

  // Columns from `first` on; 0 past the row's end.
  GRETA_DEVICE void load(u32 first, Values& x) const {
    Vector raw[ITEMS], other[ITEMS];
    GRETA_UNROLL
    for (u32 i = 0; i < ITEMS; ++i) {
      raw[i] = {};
      other[i] = {};
      const u32 col = column(first, i);
      if (col >= args.cols) continue;
      raw[i] = load_vector(args.x + start() + col);
#if PACKED
      other[i] = load_vector(args.x + start() + args.cols + col);
#elif FUSED >= ADD_RMSNORM
      other[i] = load_vector(args.other + start() + col);
#endif
    }
#if FUSED == LAYERNORM
    const float origin = to_float(args.x[start()]);
#endif
    GRETA_UNROLL
    for (u32 i = 0; i < ITEMS; ++i) {
      GRETA_UNROLL
      for (u32 j = 0; j < VEC; ++j) {
        x[i][j] = element(raw[i], j);
#if FUSED == LAYERNORM
        x[i][j] = column(first, i) < args.cols ? x[i][j] - origin : 0.0f;
#elif FUSED == ADD_RMSNORM
        x[i][j] += element(other[i], j);
#elif FUSED == SILU_MUL
        x[i][j] = silu(x[i][j]) * element(other[i], j);
#endif
      }
    }
  }

  GRETA_DEVICE void store_sums(u32 first, const Values& x) const {
#if FUSED == ADD_RMSNORM
    if (!inside) return;
    GRETA_UNROLL
    for (u32 i = 0; i < ITEMS; ++i) {
      const u32 col = column(first, i);
      if (col < args.cols) store_floats(args.sum + start() + col, x[i]);
    }
#endif
  }

  GRETA_DEVICE Statistic statistic(u32 first, const Values& x) const {
#if FUSED == LAYERNORM
    const u32 mine = column(first, 0);
    const bool any = mine < args.cols;
    return moments_of(x, any ? smaller(ITEMS, (args.cols - mine - 1) / (LANES * VEC) + 1) : 0);
#else
    return sum_of_squares(x);
#endif
  }

  GRETA_DEVICE Factors factors(const Statistic& own, const Shared& shared) const {
    const Statistic all = reduce_run<LANES>(own, Merge{}, shared.statistics);
#if FUSED == LAYERNORM
    const float factor = fast_inverse_sqrt(all.squares / float(args.cols) + args.epsilon);
    return {factor, -all.mean * factor};
#else
    return {fast_inverse_sqrt(all / float(args.cols) + args.epsilon), 0.0f};
#endif
  }

  GRETA_DEVICE void normalise(u32 first, Values& x, const Factors& factors) const {
#if NORM
    GRETA_UNROLL
    for (u32 i = 0; i < ITEMS; ++i) {
      const u32 col = column(first, i);
      Affine affine = {};
      if (col < args.cols) affine = load_affine(args.weight, args.bias, col);
      GRETA_UNROLL
      for (u32 j = 0; j < VEC; ++j) {
#if FUSED == LAYERNORM
        const float y = multiply_add(x[i][j], factors.factor, factors.shift);
        x[i][j] = col < args.cols ? apply(affine, j, y) : 0.0f;
#else
        x[i][j] = apply(affine, j, x[i][j] * factors.factor);
#endif
      }
    }
#endif
  }

  static GRETA_DEVICE u32 most_of(const Values& x) {
    u32 most = 0;
    GRETA_UNROLL
    for (u32 i = 0; i < ITEMS; ++i) {
      GRETA_UNROLL
      for (u32 j = 0; j < VEC; ++j) most = larger_size(most, x[i][j]);
    }
    return most;
  }

  // `scale`: of all of these columns, unless blocks have their own.
  GRETA_DEVICE void store(u32 first, const Values& x, float scale, const Shared& shared) const {
    const u64 codes = u64(row) * (Q_STRIDE > 0 ? u32(Q_STRIDE) : args.cols / codes_of_byte);
    float inverse = 1.0f / scale;
    GRETA_UNROLL
    for (u32 i = 0; i < ITEMS; ++i) {
      const u32 col = column(first, i);
#if SCALES >= 2
      u32 most = 0;
      GRETA_UNROLL
      for (u32 j = 0; j < VEC; ++j) most = larger_size(most, x[i][j]);
      most = reduce_run<SCALE_BLOCK / VEC>(most, LargerSize{}, shared.sizes);
#if SCALES == 3
      const u32 stored = power_code_of(most);
      inverse = inverse_power(stored);
#else
      const float stored = scale_of(most);
      inverse = 1.0f / stored;
#endif
      if (inside && col < args.cols && col % SCALE_BLOCK == 0) {
        const u32 blocks = (args.cols - 1) / SCALE_BLOCK + 1;
        args.scales[u64(row) * blocks + col / SCALE_BLOCK] = Scale(stored);
      }
#endif
      if (!inside || col >= args.cols) continue;
      float y[VEC];
      GRETA_UNROLL
      for (u32 j = 0; j < VEC; ++j) y[j] = finite(x[i][j]) * inverse;
      store_codes(args.codes + codes + col / codes_of_byte, y);
    }
  }
};

// each(first) for the columns that a row's threads have at a time.
template <typename Each>
GRETA_DEVICE void walk(const Arguments& args, Each each) {
  GRETA_NO_UNROLL
  for (u32 at = 0; at < args.cols; at += chunk) each(at);
}

GRETA_DEVICE void quantize_row(const Row& row, u32 first, const Shared& shared) {
  const Arguments& args = row.args;
  Values x;
  Factors factors = {};
#if KIND != STREAMED
  row.load(first, x);
  row.store_sums(first, x);
  if (NORM) factors = row.factors(row.statistic(first, x), shared);
  row.normalise(first, x, factors);
#elif NORM
  Statistic own = {};
  walk(args, [&](u32 at) {
    row.load(at, x);
    row.store_sums(at, x);
    own = Merge{}(own, row.statistic(at, x));
  });
  factors = row.factors(own, shared);
#endif
  float scale = 1.0f;
#if SCALES == 0
  scale = args.scales[0] >= least_scale ? args.scales[0] : least_scale;
#elif SCALES == 1
  u32 most = 0;
#if KIND == STREAMED
  walk(args, [&](u32 at) {
    row.load(at, x);
    row.normalise(at, x, factors);
    most = LargerSize{}(most, row.most_of(x));
  });
#else
  most = row.most_of(x);
#endif
  scale = scale_of(reduce_run<LANES>(most, LargerSize{}, shared.sizes));
  if (row.inside && thread_index() % LANES == 0) args.scales[row.row] = scale;
#endif
#if KIND == STREAMED
  walk(args, [&](u32 at) {
    row.load(at, x);
    row.normalise(at, x, factors);
    row.store(at, x, scale, shared);
  });
#else
  row.store(first, x, scale, shared);
#endif
}

GRETA_KERNEL(THREADS)
quantize_rows(const In* GRETA_READ x, const In* GRETA_READ other, const In* GRETA_READ weight,
              const In* GRETA_READ bias, Scale* scales, In* __restrict__ sum,
              u8* __restrict__ codes, u32 rows, u32 cols, u32 parts, float epsilon) {
  begin_launch();
  GRETA_SHARED(u32, sizes, waves);
  GRETA_SHARED(Statistic, statistics, waves);
  const Arguments args{x, other, weight, bias, scales, sum, codes, rows, cols, parts, epsilon};
  const u32 group = block_index<THREADS>();
#if KIND == FLAT
  if (group >= rows * parts) return;
  quantize_row({args, group / parts, true}, group % parts * chunk, {sizes, statistics});
#else
  if (group >= (rows - 1) / ROWS + 1) return;
  const u32 row = group * ROWS + thread_index() / LANES;
  quantize_row({args, smaller(row, rows - 1), row < rows}, 0, {sizes, statistics});
#endif
}
