// The TOP_K experts of each token, the largest first, and their weights. LANES threads of a wave
// share a token; they agree on one expert after the other, and keep the picks in turn.

#if !defined(LANES) || !defined(EXPERTS) || !defined(TOP_K) || !defined(SIGMOID) || \
    !defined(RENORMALISE) || !defined(BIAS) || !defined(GROUPS) || !defined(TOP_GROUPS)
#error "LANES, EXPERTS, {TOP_,}{K,GROUPS}, SIGMOID, RENORMALISE and BIAS must be defined"
#endif
#if LANES < 1 || LANES > 32 || (LANES & (LANES - 1)) != 0 || THREADS % LANES != 0
#error "LANES is a power of 2, at most 32"
#endif
#if EXPERTS % VEC != 0 || ITEMS * LANES * VEC < EXPERTS
#error "ITEMS vectors of LANES threads hold the EXPERTS logits of a token"
#endif
#if TOP_K < 1 || TOP_K > EXPERTS
#error "TOP_K is from 1 to EXPERTS"
#endif
#if GROUPS < 1 || GROUPS > 16 || EXPERTS % GROUPS != 0 || TOP_GROUPS > GROUPS || \
    TOP_GROUPS * (EXPERTS / GROUPS) < TOP_K || (BIAS && GROUPS > 1 && EXPERTS / GROUPS < 2)
#error "GROUPS of equal size, of which TOP_GROUPS have the picks"
#endif

#include "common/elementwise.hip"
#include "common/reduce.hip"

#define SLOTS ((TOP_K + LANES - 1) / LANES)

GRETA_DEVICE float infinity() { return float_from_bits(0x7f800000U); }

// e^x, x <= 0; 0 where that is less than 2^-126.
GRETA_DEVICE float decay(float x) { return fast_exp2(x * 1.44269504088896340736f); }

// e^(x - y), x <= y, also where both are the same infinity.
GRETA_DEVICE float decay_to(float x, float y) { return x == y ? 1.0f : decay(x - y); }

// Integers in the order of floats: zeros are equal. A NaN is the lowest of all.
constexpr int none = int(0x80000000U);

GRETA_DEVICE int order(float x) {
  const u32 bits = bits_of(x), magnitude = bits & 0x7fffffffU;
  return magnitude > 0x7f800000U ? none : bits >> 31 != 0 ? -int(magnitude) : int(magnitude);
}

// A NaN counts as -inf.
GRETA_DEVICE float without_nan(float x) { return order(x) == none ? -infinity() : x; }

struct Pick {
  int key;
  u32 expert;
  float logit;
};

template <typename F>
GRETA_DEVICE Pick each_word(Pick p, F f) {
  return {int(f(u32(p.key))), f(p.expert), f(p.logit)};
}

struct Better {
  GRETA_DEVICE Pick operator()(const Pick& a, const Pick& b) const {
    return b.key > a.key || (b.key == a.key && b.expert < a.expert) ? b : a;
  }
};

// The logits of this thread: those of experts expert_of(i, j).
typedef float Logits[ITEMS][VEC];

GRETA_DEVICE u32 expert_of(u32 i, u32 j) {
  return (i * LANES + thread_index() % LANES) * VEC + j;
}

GRETA_DEVICE void load_logits(const In* row, bool inside, Logits& x) {
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    Vector vector = {};
    const bool any = inside && expert_of(i, 0) < EXPERTS;
    if (any) vector = load_vector(row + expert_of(i, 0));
    GRETA_UNROLL
    for (u32 j = 0; j < VEC; ++j) x[i][j] = any ? without_nan(element(vector, j)) : -infinity();
  }
}

// The largest logit of all experts, and the sum of the exponentials relative to it.
struct Total {
  float largest, sum;
};

GRETA_DEVICE Total total_of(const Logits& x) {
  const float largest = reduce_lanes<LANES>(reduce_values(x, Larger{}), Larger{});
  float sum = 0.0f;
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    GRETA_UNROLL
    for (u32 j = 0; j < VEC; ++j) {
      if (expert_of(i, j) < EXPERTS) sum += decay_to(x[i][j], largest);
    }
  }
  return {largest, reduce_lanes<LANES>(sum, Add{})};
}

// Of a logit relative to `base`: a common factor of all scores.
GRETA_DEVICE float score_of(float x, float base) {
#if SIGMOID
  const float size = x < 0.0f ? -x : x, least = x < 0.0f ? x : 0.0f;
  return decay_to(least, base) / (1.0f + decay(-size));
#else
  return decay_to(x, base);
#endif
}

GRETA_DEVICE void make_keys(const Logits& x, const float* bias, const Total& total,
                            int (&key)[ITEMS][VEC]) {
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    GRETA_UNROLL
    for (u32 j = 0; j < VEC; ++j) {
      const u32 expert = expert_of(i, j);
      float value = x[i][j];
#if BIAS
      if (expert < EXPERTS) {
#if SIGMOID
        value = score_of(value, 0.0f);
#else
        value = total.largest == -infinity() ? 0.0f : score_of(value, total.largest) / total.sum;
#endif
        value = without_nan(value + bias[expert]);
      }
#endif
      key[i][j] = expert < EXPERTS ? order(value) : none;
    }
  }
}

#if GROUPS > 1
struct TwoLargest {
  int first, second;
};

template <typename F>
GRETA_DEVICE TwoLargest each_word(TwoLargest t, F f) {
  return {int(f(u32(t.first))), int(f(u32(t.second)))};
}

struct MergeTwo {
  GRETA_DEVICE static int more(int a, int b) { return a > b ? a : b; }
  GRETA_DEVICE static int less(int a, int b) { return a < b ? a : b; }
  GRETA_DEVICE TwoLargest operator()(const TwoLargest& a, const TwoLargest& b) const {
    return {more(a.first, b.first), more(less(a.first, b.first), more(a.second, b.second))};
  }
};

// The inverse of order().
GRETA_DEVICE float in_order(int key) {
  return float_from_bits(key < 0 ? 0x80000000U | u32(-key) : u32(key));
}

// Of the GROUPS of neighbouring experts only the TOP_GROUPS best ones keep their keys. Groups are
// compared by their largest key, with a bias by the sum of the two largest.
GRETA_DEVICE void keep_groups(int (&key)[ITEMS][VEC]) {
  constexpr u32 size = EXPERTS / GROUPS;
  int score[GROUPS];
  GRETA_UNROLL
  for (u32 g = 0; g < GROUPS; ++g) {
    TwoLargest two = {none, none};
    GRETA_UNROLL
    for (u32 i = 0; i < ITEMS; ++i) {
      GRETA_UNROLL
      for (u32 j = 0; j < VEC; ++j) {
        if (expert_of(i, j) / size == g) two = MergeTwo{}(two, TwoLargest{key[i][j], none});
      }
    }
    two = reduce_lanes<LANES>(two, MergeTwo{});
#if BIAS
    score[g] = order(without_nan(in_order(two.first) + in_order(two.second)));
#else
    score[g] = two.first;
#endif
  }
  u32 kept = 0;
  GRETA_NO_UNROLL
  for (u32 n = 0; n < TOP_GROUPS; ++n) {
    int most = none;
    u32 best = GROUPS;
    GRETA_UNROLL
    for (u32 g = 0; g < GROUPS; ++g) {
      if ((kept >> g & 1) != 0 || (best < GROUPS && score[g] <= most)) continue;
      most = score[g];
      best = g;
    }
    kept |= 1U << best;
  }
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    GRETA_UNROLL
    for (u32 j = 0; j < VEC; ++j) {
      const u32 group = expert_of(i, j) / size;
      if (group >= GROUPS || (kept >> group & 1) == 0) key[i][j] = none;
    }
  }
}
#endif

// The best of this thread's experts that are left.
GRETA_DEVICE Pick best_left(const Logits& x, const int (&key)[ITEMS][VEC]) {
  Pick best = {none, EXPERTS, -infinity()};
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    GRETA_UNROLL
    for (u32 j = 0; j < VEC; ++j) {
      if (key[i][j] > best.key) best = {key[i][j], expert_of(i, j), x[i][j]};
    }
  }
  return best;
}

GRETA_DEVICE void take(u32 expert, int (&key)[ITEMS][VEC]) {
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    GRETA_UNROLL
    for (u32 j = 0; j < VEC; ++j) {
      if (expert_of(i, j) == expert) key[i][j] = none;
    }
  }
}

// Picks s * LANES + lane of the token, for each s.
struct Picks {
  u32 expert[SLOTS];
  float logit[SLOTS];
};

GRETA_DEVICE Picks pick_all(const Logits& x, int (&key)[ITEMS][VEC]) {
  Picks picks;
  GRETA_UNROLL
  for (u32 s = 0; s < SLOTS; ++s) {
    picks.expert[s] = 0;
    picks.logit[s] = -infinity();
    const u32 count = smaller(LANES, TOP_K - s * LANES);
    GRETA_NO_UNROLL
    for (u32 lane = 0; lane < count; ++lane) {
      const Pick best = reduce_lanes<LANES>(best_left(x, key), Better{});
      take(best.expert, key);
      if (thread_index() % LANES == lane) {
        picks.expert[s] = best.expert;
        picks.logit[s] = best.logit;
      }
    }
  }
  return picks;
}

GRETA_DEVICE bool has_pick(u32 s) { return s * LANES + thread_index() % LANES < TOP_K; }

// The picks' scores, and what they are divided by.
GRETA_DEVICE float weigh(const Picks& picks, const Total& total, float (&score)[SLOTS]) {
  float base = total.largest, sum = total.sum;
#if RENORMALISE
  base = -infinity();
  GRETA_UNROLL
  for (u32 s = 0; s < SLOTS; ++s) base = larger(base, picks.logit[s]);
  base = reduce_lanes<LANES>(base, Larger{});
#endif
#if SIGMOID
  base = RENORMALISE && base < 0.0f ? base : 0.0f;
#endif
  GRETA_UNROLL
  for (u32 s = 0; s < SLOTS; ++s) {
    score[s] = has_pick(s) && base > -infinity() ? score_of(picks.logit[s], base) : 0.0f;
  }
#if RENORMALISE
  sum = 0.0f;
  GRETA_UNROLL
  for (u32 s = 0; s < SLOTS; ++s) sum += score[s];
  sum = reduce_lanes<LANES>(sum, Add{});
#elif SIGMOID
  sum = 1.0f;
#endif
  return sum;
}

#if BIAS
GRETA_KERNEL(THREADS)
route_lanes(const In* GRETA_READ logits, const float* GRETA_READ bias, int* __restrict__ ids,
            float* __restrict__ weights, u32 tokens, float scale) {
  begin_launch();
#else
GRETA_KERNEL(THREADS)
route_lanes(const In* GRETA_READ logits, int* __restrict__ ids, float* __restrict__ weights,
            u32 tokens, float scale) {
  begin_launch();
  const float* const bias = nullptr;
#endif
  const u32 token = block_index<THREADS>() * (THREADS / LANES) + thread_index() / LANES;
  Logits x;
  load_logits(logits + u64(token) * EXPERTS, token < tokens, x);
  Total total = {0.0f, 1.0f};
#if !SIGMOID && (BIAS || !RENORMALISE)
  total = total_of(x);
#endif
  int key[ITEMS][VEC];
  make_keys(x, bias, total, key);
#if GROUPS > 1
  keep_groups(key);
#endif
  const Picks picks = pick_all(x, key);
  float score[SLOTS];
  const float sum = weigh(picks, total, score);
  if (token >= tokens) return;
  GRETA_UNROLL
  for (u32 s = 0; s < SLOTS; ++s) {
    if (!has_pick(s)) continue;
    const u64 at = u64(token) * TOP_K + s * LANES + thread_index() % LANES;
    ids[at] = int(picks.expert[s]);
    weights[at] = sum > 0.0f ? score[s] / sum * scale : 0.0f;
  }
}
