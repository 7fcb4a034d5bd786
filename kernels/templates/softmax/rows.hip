// out = softmax(scale * in + mask) of each row. The exponentials are relative to the largest value
// that a thread has seen, and a factor turns them to the whole row's.

#if !defined(SCALED) || !defined(MASK)
#error "SCALED and MASK must be defined"
#endif
#if MASK < 0 || MASK > 2
#error "MASK is 0 (none), 1 (causal) or 2 (additive)"
#endif

#include "common/rows.hip"

GRETA_DEVICE float infinity() { return float_from_bits(0x7f800000U); }
constexpr float lowest = -3.40282346638528859812e38f;

// e^x, x <= 0; 0 where that is less than 2^-126.
GRETA_DEVICE float decay(float x) { return fast_exp2(x * 1.44269504088896340736f); }

struct Softmax {
  struct Raw {
    Vector in;
#if MASK == 2
    Vector mask;
#endif
  };
  struct Fixed {};
  // Of the values seen, whose largest is taken as `lowest` where all are -inf; sum of
  // e^(value - largest). Where the largest is inf, the number of these.
  struct Statistic {
    float largest, sum;
  };
  struct Factors {
    float factor;
  };

  const In* in;
  const In* mask;
  Out* out;
  float scale;
  u32 visible;  // columns

  GRETA_DEVICE Softmax(const Arguments& args, u32 row)
      : in(args.in + in_row(args, row)),
        mask(MASK == 2 ? args.other + in_row(args, row) : nullptr),
        out(args.out + out_row(args, row)),
        scale(args.factor),
        visible(MASK == 1 ? row % args.cols + 1 : args.cols) {}

  GRETA_DEVICE Raw load(u32 col) const {
    Raw raw = {};
    if (MASK == 1 && col >= visible) return raw;
    raw.in = load_before_writing(in + col);
#if MASK == 2
    raw.mask = load_vector(mask + col);
#endif
    return raw;
  }
  static constexpr u32 inputs = 1 + (MASK == 2);
  GRETA_DEVICE const In* input(u32 k) const { return k == 0 ? in : mask; }
  GRETA_DEVICE bool reads(u32 col) const { return MASK != 1 || col < visible; }
  static GRETA_DEVICE float padding() { return -infinity(); }
  static GRETA_DEVICE Fixed fixed(const Arguments&, u32) { return {}; }

  GRETA_DEVICE void values(const Raw& raw, u32 col, float (&x)[VEC]) const {
    GRETA_UNROLL
    for (u32 j = 0; j < VEC; ++j) {
      x[j] = element(raw.in, j);
#if MASK == 2
      x[j] = multiply_add(x[j], scale, element(raw.mask, j));
#elif SCALED
      x[j] *= scale;
#endif
      if (MASK == 1 && col + j >= visible) x[j] = -infinity();
    }
  }

  static GRETA_DEVICE Statistic nothing() { return {lowest, 0.0f}; }

  static GRETA_DEVICE Statistic gather(Values& x, u32) {
    const float largest = reduce_values(x, Larger{});
    if (largest > -infinity() && largest < infinity()) {
      each(x, [=](float value) { return decay(value - largest); });
      return {largest, reduce_values(x, Add{})};
    }
    each(x, [](float value) { return value != value ? value : value == infinity() ? 1.0f : 0.0f; });
    return {largest == infinity() ? infinity() : lowest, reduce_values(x, Add{})};
  }

  // e^(a - b), a <= b.
  static GRETA_DEVICE float weight(float a, float b) { return a == b ? 1.0f : decay(a - b); }

  static GRETA_DEVICE Statistic merge(const Statistic& a, const Statistic& b) {
    if (a.largest < b.largest) return {b.largest, b.sum + a.sum * weight(a.largest, b.largest)};
    return {a.largest, a.sum + b.sum * weight(b.largest, a.largest)};
  }

  GRETA_DEVICE Factors factors(const Statistic& own, const Statistic& total) const {
    const float share = total.sum == 0.0f ? 0.0f : 1.0f / total.sum;
    return {weight(own.largest, total.largest) * share};
  }

  GRETA_DEVICE void put(const Factors& factors, const Fixed&, const float (&x)[VEC],
                        u32 col) const {
    float y[VEC];
    GRETA_UNROLL
    for (u32 j = 0; j < VEC; ++j) y[j] = x[j] * factors.factor;
    store_floats(out + col, y);
  }
};

template <typename F>
GRETA_DEVICE Softmax::Statistic each_word(Softmax::Statistic s, F f) {
  return {f(s.largest), f(s.sum)};
}

ROW_KERNEL(softmax_rows, Softmax)
