#version 460
// out = softmax(scale * in + mask) of each row. The exponentials are relative to the largest value
// that a thread has seen, and a factor turns them to the whole row's.

#if !defined(SCALED) || !defined(MASK)
#error "SCALED and MASK must be defined"
#endif
#if MASK < 0 || MASK > 2
#error "MASK is 0 (none), 1 (causal) or 2 (additive)"
#endif

#include "common/rows.glsl"

#define INFINITY uintBitsToFloat(0x7f800000u)
#define LOWEST -3.40282346638528859812e38
#define PADDING -INFINITY
#define PART_BYTES 8

struct Row {
  uint64_t in_, mask, out_;
  uint visible;  // columns
};
struct Raw {
  X_RAW in_;
#if MASK == 2
  X_RAW mask;
#endif
};
struct Fixed {
  uint none;
};
// Of the values seen, whose largest is taken as LOWEST where all are -inf; sum of e^(value - largest).
// Where the largest is inf, the number of these.
struct Statistic {
  float largest, sum;
};
struct Factors {
  float factor;
};

Row row_at(uint row) {
  const uint64_t at = in_row(row);
  return Row(args.in_ + at * IN_BYTES, args.other + at * IN_BYTES,
             args.out_ + out_row(row) * OUT_BYTES, MASK == 1 ? row % args.cols + 1 : args.cols);
}

Raw load(Row row, uint col) {
  Raw raw;
#if MASK == 1
  if (col >= row.visible) {
    raw.in_ = X_RAW(0);
    return raw;
  }
#endif
  raw.in_ = load_vector(row.in_ + uint64_t(col) * IN_BYTES);
#if MASK == 2
  raw.mask = load_vector(row.mask + uint64_t(col) * IN_BYTES);
#endif
  return raw;
}

Fixed load_fixed(uint col) { return Fixed(0); }

void take(Row row, Raw raw, uint col, out float x[VEC]) {
  unpack(raw.in_, x);
#if MASK == 2
  float m[VEC];
  unpack(raw.mask, m);
#endif
  [[unroll]] for (uint j = 0; j < VEC; ++j) {
#if MASK == 2
    x[j] = fma(x[j], args.factor, m[j]);
#elif SCALED
    x[j] *= args.factor;
#endif
#if MASK == 1
    if (col + j >= row.visible) x[j] = -INFINITY;
#endif
  }
}

bool is_nan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }

Statistic nothing() { return Statistic(LOWEST, 0.0); }

// Not every driver's exp() gives NaN for NaN; additions do.
Statistic gather(inout float x[ITEMS][VEC], uint have) {
  const float largest = largest_of(x);
  if (largest > -INFINITY && largest < INFINITY) {
    [[unroll]] for (uint i = 0; i < ITEMS; ++i)
      [[unroll]] for (uint j = 0; j < VEC; ++j) x[i][j] -= largest;
    const float all = sum_of(x);  // at most 0, or NaN
    [[unroll]] for (uint i = 0; i < ITEMS; ++i)
      [[unroll]] for (uint j = 0; j < VEC; ++j) x[i][j] = exp(x[i][j]);
    return Statistic(largest, is_nan(all) ? all : sum_of(x));
  }
  [[unroll]] for (uint i = 0; i < ITEMS; ++i)
    [[unroll]] for (uint j = 0; j < VEC; ++j)
      if (!is_nan(x[i][j])) x[i][j] = x[i][j] == INFINITY ? 1.0 : 0.0;
  return Statistic(largest == INFINITY ? INFINITY : LOWEST, sum_of(x));
}

// e^(a - b), a <= b.
float weight(float a, float b) { return a == b ? 1.0 : exp(a - b); }

Statistic merge(Statistic a, Statistic b) {
  if (a.largest < b.largest)
    return Statistic(b.largest, b.sum + a.sum * weight(a.largest, b.largest));
  return Statistic(a.largest, a.sum + b.sum * weight(b.largest, a.largest));
}

#if SUBGROUP > 0
Statistic across(Statistic s, uint mask) {
  return Statistic(subgroupShuffleXor(s.largest, mask), subgroupShuffleXor(s.sum, mask));
}
#endif

Factors factors(Statistic own, Statistic total) {
  const float share = total.sum == 0.0 ? 0.0 : 1.0 / total.sum;
  return Factors(weight(own.largest, total.largest) * share);
}

void put(Row row, Factors f, Fixed fixed_, float x[VEC], uint col) {
  [[unroll]] for (uint j = 0; j < VEC; ++j) x[j] *= f.factor;
  store_floats(row.out_ + uint64_t(col) * OUT_BYTES, x);
}

Statistic get_part(uint64_t at) {
  const vec2 part = F32x2(at).v;
  return Statistic(part.x, part.y);
}
void put_part(uint64_t at, Statistic s) { F32x2(at).v = vec2(s.largest, s.sum); }

#include "common/walk_rows.glsl"
