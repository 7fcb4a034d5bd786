// The layer norm of rows.
#pragma once

#include "common/norms.hip"

#include "common/mean_variance.hip"  // of the rows that the former walks

// y = (in - mean) / sqrt(variance + epsilon) * weight + bias of each row; out = y, or with SECOND
// y / sqrt(mean of y^2 + epsilon) * gain.
struct LayerNorm {
  struct Raw {
    Vector in;
  };
  struct Fixed {
    Affine affine;
#if SECOND && WEIGHT
    Vector gain;
#endif
  };
  typedef Moments Statistic;
  struct Factors {
    float factor, shift;  // of an element, times `factor`
  };

  const In* in;
  Out* out;
  float first, count, epsilon;

  GRETA_DEVICE LayerNorm(const Arguments& args, u32 row)
      : in(args.in + in_row(args, row)),
        out(args.out + out_row(args, row)),
        first(to_float(*in)),
        count(float(args.cols)),
        epsilon(args.factor) {}

  GRETA_DEVICE Raw load(u32 col) const { return {load_before_writing(in + col)}; }
  static constexpr u32 inputs = 1;
  GRETA_DEVICE const In* input(u32) const { return in; }
  static GRETA_DEVICE bool reads(u32) { return true; }
  static GRETA_DEVICE float padding() { return 0.0f; }
  static GRETA_DEVICE Fixed fixed(const Arguments& args, u32 col) {
    Fixed fixed = {};
    fixed.affine = load_affine(args, col);
#if SECOND && WEIGHT
    fixed.gain = load_vector(args.gain + col);
#endif
    return fixed;
  }

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
    const float factor = fast_inverse_sqrt(total.squares / count + epsilon);
    return {factor, -total.mean * factor};
  }

  GRETA_DEVICE void refine(const Factors& factors, const Fixed& fixed, float (&x)[VEC]) const {
    GRETA_UNROLL
    for (u32 j = 0; j < VEC; ++j) {
      x[j] = apply(fixed.affine, j, multiply_add(x[j], factors.factor, factors.shift));
    }
  }

  GRETA_DEVICE Factors finish(float squares) const {
    return {fast_inverse_sqrt(squares / count + epsilon), 0.0f};
  }

  GRETA_DEVICE void put(const Factors& factors, const Fixed& fixed, float (&x)[VEC],
                        u32 col) const {
#if SECOND
    GRETA_UNROLL
    for (u32 j = 0; j < VEC; ++j) {
      x[j] *= factors.factor;
#if WEIGHT
      x[j] *= element(fixed.gain, j);
#endif
    }
#else
    refine(factors, fixed, x);
#endif
    store_floats(out + col, x);
  }
};
