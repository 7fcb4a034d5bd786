// Joins the partial results of attention over parts of the keys: out is the average of the parts' outputs,
// each of which weighs e to the power of its log-sum-exp less the greatest one. A thread takes VEC
// neighbours of a head, of ITEMS parts at a time, and keeps half the average of the parts so far: so nothing
// overflows, and log-sum-exps are read once. A part whose log-sum-exp is minus infinity has seen no key,
// and is not used, nor is one whose weight becomes 0, whatever its outputs are. With LSE the log-sum-exps of all keys are stored.
#if !defined(DIM) || !defined(LSE)
#error "DIM and LSE must be defined"
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
                      Out* __restrict__ out, LSE_PARAMETER u32 parts, u32 rows) {
  begin_launch();
  constexpr u32 width = DIM / VEC;
  const Place place = advance(tile_start<THREADS>(width), thread_index(), width);
  if (place.row >= rows) return;
  const float none = float_from_bits(0xff800000U);
  const u64 at = u64(place.row) * DIM + place.col * VEC, step = u64(rows) * DIM;
  const In* from = outs + at;
  const float* from_lse = lses + place.row;

  // y is half the average of the parts so far, whose weights add up to `sum`.
  float greatest = none, sum = 0.0f, y[VEC] = {};
  GRETA_NO_UNROLL
  for (u32 first = 0; first < parts; first += ITEMS) {
    float x[ITEMS];
    Vector vector[ITEMS];
    GRETA_UNROLL
    for (u32 i = 0; i < ITEMS; ++i) {
      x[i] = none;
      vector[i] = {};
      if (first + i < parts) {
        x[i] = *from_lse;
        vector[i] = load_vector(from);
      }
      from += step;
      from_lse += rows;
    }
    loads_go_ahead();
    const float before = greatest;
    GRETA_UNROLL
    for (u32 i = 0; i < ITEMS; ++i) greatest = x[i] > greatest || x[i] != x[i] ? x[i] : greatest;
    const auto weight = [&](float lse) {
      return lse == none ? 0.0f : fast_exp2((lse - greatest) * 1.4426950408889634f);
    };
    float kept = sum * weight(before);
    sum = kept;
    GRETA_UNROLL
    for (u32 i = 0; i < ITEMS; ++i) {
      x[i] = weight(x[i]);
      sum += x[i];
    }
    const float factor = sum == 0.0f ? 0.0f : 0.5f / sum;
    kept *= 2.0f * factor;
    GRETA_UNROLL
    for (int j = 0; j < VEC; ++j) y[j] = kept == 0.0f ? 0.0f : y[j] * kept;
    GRETA_UNROLL
    for (u32 i = 0; i < ITEMS; ++i) {
      const float of_part = x[i] * factor;
      GRETA_UNROLL
      for (int j = 0; j < VEC; ++j) {
        y[j] = of_part == 0.0f ? y[j] : multiply_add(of_part, element(vector[i], j), y[j]);
      }
    }
  }
  GRETA_UNROLL
  for (int j = 0; j < VEC; ++j) y[j] *= 2.0f;
  store_floats(out + at, y);
#if LSE
  if (place.col == 0) {
    lse[place.row] = sum == 0.0f ? none : greatest + fast_log2(sum) * 0.69314718055994531f;
  }
#endif
}
