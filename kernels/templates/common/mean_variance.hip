// Mean and variance of what threads hold. A row's first element is taken from all of them: what is
// left is exact where they are close together, however far from zero, and its mean is no further from
// zero than an element is from the mean. Source of merge_moments(): Chan, Golub, LeVeque, "Updating
// Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979.
#pragma once

#if !defined(WHOLE)
#error "WHOLE must be defined: whether all threads have as many elements"
#endif

#include "common/activation.hip"
#include "common/values.hip"

struct Moments {
  float count, mean, squares;  // squares: of the distances from the mean, summed
};

template <typename F>
GRETA_DEVICE Moments each_word(Moments m, F f) {
  // All threads have as many elements where a row is WHOLE.
  return {WHOLE ? m.count : f(m.count), f(m.mean), f(m.squares)};
}

GRETA_DEVICE Moments merge_moments(const Moments& a, const Moments& b) {
  const float count = a.count + b.count;
  const float share = WHOLE ? 0.5f : b.count * fast_reciprocal(larger(count, 1.0f));
  const float apart = b.mean - a.mean;
  return {count, a.mean + apart * share,
          a.squares + b.squares + apart * apart * (a.count * share)};
}

// Of a thread's values, the first `have` of whose ITEMS vectors lie inside a row; the others are 0.
GRETA_DEVICE Moments moments_of(const Values& x, u32 have) {
  const float count = WHOLE ? float(ITEMS * VEC) : float(have * VEC);
  const float mean = WHOLE ? reduce_values(x, Add{}) * (1.0f / float(ITEMS * VEC))
                           : reduce_values(x, Add{}) * fast_reciprocal(larger(count, 1.0f));
  Values apart;
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    GRETA_UNROLL
    for (u32 j = 0; j < VEC; ++j) apart[i][j] = lies_before(i, have) ? x[i][j] - mean : 0.0f;
  }
  return {count, mean, sum_of_squares(apart)};
}
