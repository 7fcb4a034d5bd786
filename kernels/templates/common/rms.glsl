// out = x / sqrt(mean of x^2 + epsilon) * weight, x = in, or with RESIDUAL in + residual, which is
// stored as well.

#if !defined(RESIDUAL)
#error "RESIDUAL must be defined"
#endif

#include "common/norms.glsl"

#define PART_BYTES 4

struct Row {
  uint64_t in_, out_;  // elements before the row
};
struct Raw {
  X_RAW in_;
#if RESIDUAL
  X_RAW residual;
#endif
};
struct Statistic {
  float squares;  // their sum
};
struct Factors {
  float factor;
};

Row row_at(uint row) { return Row(in_row(row), out_row(row)); }

Raw load(Row row, uint col) {
  Raw raw;
  raw.in_ = load_vector(args.in_ + (row.in_ + col) * IN_BYTES);
#if RESIDUAL
  raw.residual = load_vector(args.other + (row.in_ + col) * IN_BYTES);
#endif
  return raw;
}

void take(Row row, Raw raw, uint col, out float x[VEC]) {
  unpack(raw.in_, x);
#if RESIDUAL
  float r[VEC];
  unpack(raw.residual, r);
  [[unroll]] for (uint j = 0; j < VEC; ++j) x[j] += r[j];
#endif
}

Statistic nothing() { return Statistic(0.0); }
Statistic gather(float x[ITEMS][VEC], uint have) { return Statistic(sum_of_squares(x)); }
Statistic merge(Statistic a, Statistic b) { return Statistic(a.squares + b.squares); }
#if SUBGROUP > 0
Statistic across(Statistic s, uint mask) { return Statistic(subgroupShuffleXor(s.squares, mask)); }
#endif

Factors factors(Statistic own, Statistic total) {
  return Factors(inversesqrt(total.squares / float(args.cols) + args.factor));
}

void put(Row row, Factors f, Fixed fixed_, float x[VEC], uint col) {
#if RESIDUAL
  store_floats(args.sum + (row.out_ + col) * OUT_BYTES, x);
#endif
  [[unroll]] for (uint j = 0; j < VEC; ++j) x[j] *= f.factor;
  apply(fixed_, x);
  store_floats(args.out_ + (row.out_ + col) * OUT_BYTES, x);
}

Statistic get_part(uint64_t at) { return Statistic(F32(at).v); }
void put_part(uint64_t at, Statistic s) { F32(at).v = s.squares; }

#include "common/walk_rows.glsl"
