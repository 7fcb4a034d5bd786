// out = x / sqrt(mean of x^2 + epsilon) * weight, x = in, or with RESIDUAL in + residual, which is
// stored as well.
#pragma once

#if !defined(RESIDUAL)
#error "RESIDUAL must be defined"
#endif

#include "common/norms.hip"

struct RmsNorm {
  struct Raw {
    Vector in;
#if RESIDUAL
    Vector residual;
#endif
  };
  typedef Affine Fixed;
  typedef float Statistic;  // sum of squares
  struct Factors {
    float factor;
  };

  const In *in, *residual;
  Out *out, *sum;
  float count, epsilon;

  GRETA_DEVICE RmsNorm(const Arguments& args, u32 row)
      : in(args.in + in_row(args, row)),
        residual(RESIDUAL ? args.other + in_row(args, row) : nullptr),
        out(args.out + out_row(args, row)),
        sum(RESIDUAL ? args.sum + out_row(args, row) : nullptr),
        count(float(args.cols)),
        epsilon(args.factor) {}

  GRETA_DEVICE Raw load(u32 col) const {
    Raw raw = {};
    raw.in = load_before_writing(in + col);
#if RESIDUAL
    raw.residual = load_before_writing(residual + col);
#endif
    return raw;
  }
  static constexpr u32 inputs = 1 + RESIDUAL;
  GRETA_DEVICE const In* input(u32 k) const { return k == 0 ? in : residual; }
  static GRETA_DEVICE bool reads(u32) { return true; }
  static GRETA_DEVICE float padding() { return 0.0f; }
  static GRETA_DEVICE Fixed fixed(const Arguments& args, u32 col) { return load_affine(args, col); }

  GRETA_DEVICE void values(const Raw& raw, u32, float (&x)[VEC]) const {
    GRETA_UNROLL
    for (u32 j = 0; j < VEC; ++j) {
      x[j] = element(raw.in, j);
#if RESIDUAL
      x[j] += element(raw.residual, j);
#endif
    }
  }

  static GRETA_DEVICE Statistic nothing() { return 0.0f; }
  static GRETA_DEVICE Statistic gather(const Values& x, u32) { return sum_of_squares(x); }
  static GRETA_DEVICE Statistic merge(Statistic a, Statistic b) { return a + b; }

  GRETA_DEVICE Factors factors(Statistic, Statistic total) const {
    return {fast_inverse_sqrt(total / count + epsilon)};
  }

  GRETA_DEVICE void put(const Factors& factors, const Fixed& fixed, const float (&x)[VEC],
                        u32 col) const {
    float y[VEC];
    GRETA_UNROLL
    for (u32 j = 0; j < VEC; ++j) y[j] = apply(fixed, j, x[j] * factors.factor);
    store_floats(out + col, y);
#if RESIDUAL
    store_floats(sum + col, x);
#endif
  }
};
