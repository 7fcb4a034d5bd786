// The layer norm of rows.

#include "common/norms.glsl"

#include "common/mean_variance.glsl"  // after the extensions of the former

#define PART_BYTES 12

struct Row {
  uint64_t in_, out_;  // elements before the row
  float first;
};
struct Raw {
  X_RAW in_;
};

Row row_at(uint row) {
  const uint64_t at = in_row(row);
  return Row(at, out_row(row), load_in(args.in_ + at * IN_BYTES));
}

Raw load(Row row, uint col) { return Raw(load_vector(args.in_ + (row.in_ + col) * IN_BYTES)); }

void take(Row row, Raw raw, uint col, out float x[VEC]) {
  unpack(raw.in_, x);
  [[unroll]] for (uint j = 0; j < VEC; ++j) x[j] -= row.first;
}

Statistic get_part(uint64_t at) { return Statistic(F32(at).v, F32(at + 4).v, F32(at + 8).v); }
void put_part(uint64_t at, Statistic s) {
  F32(at).v = s.count;
  F32(at + 4).v = s.mean;
  F32(at + 8).v = s.squares;
}

struct Factors {
  float mean, factor;
};

Factors factors(Statistic own, Statistic total) {
  return Factors(total.mean, inversesqrt(total.squares / float(args.cols) + args.factor));
}

// y = (in - mean) / sqrt(variance + epsilon) * weight + bias of each row.
void refine(Factors f, Fixed fixed_, inout float x[VEC]) {
  [[unroll]] for (uint j = 0; j < VEC; ++j) x[j] = (x[j] - f.mean) * f.factor;
  apply(fixed_, x);
}

Factors finish(float squares) {
  return Factors(0.0, inversesqrt(squares / float(args.cols) + args.factor));
}

// out = y, or with SECOND y / sqrt(mean of y^2 + epsilon) * gain.
void put(Row row, Factors f, Fixed fixed_, float x[VEC], uint col) {
#if SECOND
  [[unroll]] for (uint j = 0; j < VEC; ++j) x[j] *= f.factor;
#if WEIGHT
  float gain[VEC];
  unpack(fixed_.gain, gain);
  [[unroll]] for (uint j = 0; j < VEC; ++j) x[j] *= gain[j];
#endif
#else
  refine(f, fixed_, x);
#endif
  store_floats(args.out_ + (row.out_ + col) * OUT_BYTES, x);
}

#include "common/walk_rows.glsl"
