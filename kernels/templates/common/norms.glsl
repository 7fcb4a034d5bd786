// What norms of rows share: their weights. The operation says whether it has WEIGHT and BIAS.

#if !defined(WEIGHT) || !defined(BIAS)
#error "WEIGHT and BIAS must be defined"
#endif

#include "common/rows.glsl"

#define PADDING 0.0

// Of VEC columns.
struct Fixed {
  X_RAW weight, bias, gain;
};

Fixed load_fixed(uint col) {
  Fixed fixed_ = Fixed(X_RAW(0), X_RAW(0), X_RAW(0));
#if WEIGHT
  fixed_.weight = load_vector(args.weight + uint64_t(col) * IN_BYTES);
#endif
#if BIAS
  fixed_.bias = load_vector(args.bias + uint64_t(col) * IN_BYTES);
#endif
#if SECOND && WEIGHT
  fixed_.gain = load_vector(args.gain + uint64_t(col) * IN_BYTES);
#endif
  return fixed_;
}

void apply(Fixed fixed_, inout float x[VEC]) {
  float e[VEC];
#if WEIGHT
  unpack(fixed_.weight, e);
  [[unroll]] for (uint j = 0; j < VEC; ++j) x[j] *= e[j];
#endif
#if BIAS
  unpack(fixed_.bias, e);
  [[unroll]] for (uint j = 0; j < VEC; ++j) x[j] += e[j];
#endif
}
