// Mean and variance of what threads hold. A row's first element is taken from all of them: what is
// left is exact where they are close together, however far from zero, and its mean is no further from
// zero than an element is from the mean. Source of merge(): Chan, Golub, LeVeque, "Updating Formulae
// and a Pairwise Algorithm for Computing Sample Variances", 1979.
#pragma once

#if !defined(WHOLE)
#error "WHOLE must be defined: whether all of a thread's vectors lie inside a row"
#endif

#include "common/values.glsl"

struct Statistic {
  float count, mean, squares;  // squares: of the distances from the mean, summed
};

Statistic nothing() { return Statistic(0.0, 0.0, 0.0); }

Statistic merge(Statistic a, Statistic b) {
  const float count = a.count + b.count, share = b.count / max(count, 1.0);
  const float apart = b.mean - a.mean;
  return Statistic(count, a.mean + apart * share,
                   a.squares + b.squares + apart * apart * (a.count * share));
}
#if SUBGROUP > 0
Statistic across(Statistic s, uint mask) {
  return Statistic(subgroupShuffleXor(s.count, mask), subgroupShuffleXor(s.mean, mask),
                   subgroupShuffleXor(s.squares, mask));
}
#endif

// Of a thread's values, the first `have` of whose ITEMS vectors lie inside a row; the others are 0.
Statistic gather(float x[ITEMS][VEC], uint have) {
  const float count = float(have * VEC), mean = sum_of(x) / max(count, 1.0);
  [[unroll]] for (uint i = 0; i < ITEMS; ++i)
    [[unroll]] for (uint j = 0; j < VEC; ++j)
      x[i][j] = WHOLE != 0 || i < have ? x[i][j] - mean : 0.0;
  return Statistic(count, mean, sum_of_squares(x));
}
