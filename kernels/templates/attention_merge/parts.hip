// Joins the partial results of attention over parts of the keys: out is the sum of the parts' outputs,
// each times 2 to the power of its log-sum-exp less the greatest one, divided by the sum of these
// powers. A thread takes VEC neighbours of a head, of ITEMS parts at a time. A part whose log-sum-exp
// is minus infinity has seen no key, and is not used. With LSE the log-sum-exps of all keys are stored.
#if !defined(LSE)
#error "LSE must be defined"
#endif
#if LSE
#define LSE_PARAMETER float *__restrict__ lse,
#else
#define LSE_PARAMETER
#endif

#include "common/elementwise.hip"

// `row` is a head of a token, of which each part has `rows`.
GRETA_KERNEL(THREADS)
attention_merge_parts(const In* GRETA_READ outs, const float* GRETA_READ lses,
                      Out* __restrict__ out, LSE_PARAMETER u32 parts, u32 rows, u32 dim) {
  begin_launch();
  const u32 width = dim / VEC;
  const Place place = advance(tile_start<THREADS>(width), thread_index(), width);
  if (place.row >= rows) return;
  const float none = float_from_bits(0xff800000U);
  const float* const of_row = lses + place.row;

  float greatest = none, sum = 0.0f;
  GRETA_NO_UNROLL
  for (u32 p = 0; p < parts; ++p) {
    const float x = of_row[u64(p) * rows];
    greatest = x > greatest || x != x ? x : greatest;
  }
  const auto weight = [&](float x) {
    return x == none ? 0.0f : fast_exp2((x - greatest) * 1.4426950408889634f);
  };
  GRETA_NO_UNROLL
  for (u32 p = 0; p < parts; ++p) sum += weight(of_row[u64(p) * rows]);
  const float factor = sum == 0.0f ? 0.0f : 1.0f / sum;

  float y[VEC] = {};
  GRETA_NO_UNROLL
  for (u32 first = 0; first < parts; first += ITEMS) {
    Vector vector[ITEMS];
    float weights[ITEMS];
    GRETA_UNROLL
    for (u32 i = 0; i < ITEMS; ++i) {
      const u32 part = smaller(first + i, parts - 1);  // the last one instead of those past it
      vector[i] = load_vector(outs + (u64(part) * rows + place.row) * dim + place.col * VEC);
      weights[i] = first + i < parts ? weight(of_row[u64(part) * rows]) * factor : 0.0f;
    }
    GRETA_UNROLL
    for (u32 i = 0; i < ITEMS; ++i) {
      GRETA_UNROLL
      for (int j = 0; j < VEC; ++j) {
        y[j] = weights[i] == 0.0f ? y[j] : multiply_add(weights[i], element(vector[i], j), y[j]);
      }
    }
  }
  store_floats(out + u64(place.row) * dim + place.col * VEC, y);
#if LSE
  if (place.col == 0) {
    lse[place.row] = sum == 0.0f ? none : greatest + fast_log2(sum) * 0.69314718055994531f;
  }
#endif
}
