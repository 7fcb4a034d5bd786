// Weights of norms, and what is added.
#pragma once

#if !defined(WEIGHT) || !defined(BIAS)
#error "WEIGHT and BIAS must be defined"
#endif

#include "common/elementwise.hip"

// Of VEC columns.
struct Affine {
#if WEIGHT
  Vector weight;
#endif
#if BIAS
  Vector bias;
#endif
};

GRETA_DEVICE Affine load_affine(const In* weight, const In* bias, u32 col) {
  Affine affine = {};
#if WEIGHT
  affine.weight = load_vector(weight + col);
#endif
#if BIAS
  affine.bias = load_vector(bias + col);
#endif
  return affine;
}

GRETA_DEVICE float apply(const Affine& affine, u32 j, float x) {
#if WEIGHT
  x *= element(affine.weight, j);
#endif
#if BIAS
  x += element(affine.bias, j);
#endif
  return x;
}
