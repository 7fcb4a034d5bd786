// out = (in - mean) / sqrt(variance + epsilon) * weight + bias of each row.
#include "common/moments.hip"

struct LayerNorm {
  struct Raw {
    Vector in;
  };
  typedef Affine Fixed;
  typedef Moments Statistic;
  struct Factors {
    float mean, factor;
  };

  const In* in;
  Out* out;
  float first, count, epsilon;

  GRETA_DEVICE LayerNorm(const Arguments& args, u32 row)
      : in(args.in + u64(row) * args.cols),
        out(args.out + u64(row) * args.cols),
        first(to_float(*in)),
        count(float(args.cols)),
        epsilon(args.factor) {}

  GRETA_DEVICE Raw load(u32 col) const { return {load_vector(in + col)}; }
  static GRETA_DEVICE float padding() { return 0.0f; }
  static GRETA_DEVICE Fixed fixed(const Arguments& args, u32 col) { return load_affine(args, col); }

  GRETA_DEVICE void values(const Raw& raw, u32, float (&x)[VEC]) const {
    GRETA_UNROLL
    for (u32 j = 0; j < VEC; ++j) x[j] = element(raw.in, j) - first;
  }

  static GRETA_DEVICE Statistic nothing() { return {}; }
  static GRETA_DEVICE Statistic gather(const Values& x, u32 have) { return moments_of(x, have); }
  static GRETA_DEVICE Statistic merge(const Statistic& a, const Statistic& b) {
    return merge_moments(a, b);
  }

  GRETA_DEVICE Factors factors(const Statistic&, const Statistic& total) const {
    return {total.mean, fast_inverse_sqrt(total.squares / count + epsilon)};
  }

  GRETA_DEVICE void put(const Factors& factors, const Fixed& fixed, const float (&x)[VEC],
                        u32 col) const {
    float y[VEC];
    GRETA_UNROLL
    for (u32 j = 0; j < VEC; ++j) {
      y[j] = apply(fixed, j, (x[j] - factors.mean) * factors.factor);
    }
    store_floats(out + col, y);
  }
};

ROW_KERNEL(layernorm_rows, LayerNorm)
