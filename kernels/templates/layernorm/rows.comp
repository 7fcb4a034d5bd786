#version 460
// out = (in - mean) / sqrt(variance + epsilon) * weight + bias of each row.
#include "common/moments.glsl"

struct Factors {
  float mean, factor;
};

Factors factors(Statistic own, Statistic total) {
  return Factors(total.mean, inversesqrt(total.squares / float(args.cols) + args.factor));
}

void put(Row row, Factors f, Fixed fixed_, float x[VEC], uint col) {
  [[unroll]] for (uint j = 0; j < VEC; ++j) x[j] = (x[j] - f.mean) * f.factor;
  apply(fixed_, x);
  store_floats(args.out_ + (row.at + col) * OUT_BYTES, x);
}

#include "common/walk_rows.glsl"
