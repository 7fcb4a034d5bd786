#version 460
// The TOP_K experts of each token, the largest first, and their weights. LANES threads share a token;
// they agree on one expert after the other, and keep the picks in turn.

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
    TOP_GROUPS * (EXPERTS / GROUPS) < TOP_K || BIAS != 0 && GROUPS > 1 && EXPERTS / GROUPS < 2
#error "GROUPS of equal size, of which TOP_GROUPS have the picks"
#endif

#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require

#include "common/elementwise.glsl"

#define SLOTS ((TOP_K + LANES - 1) / LANES)
#define INFINITY uintBitsToFloat(0x7f800000u)

// A pick; sums and largest values are reduced in the same form.
struct Pick {
  int key;
  uint expert;
  float logit;
};

// Reductions are of the best pick, of the sum or the largest of logits, or of the two largest keys, of
// which `expert` is the second.
#define BEST 0
#define SUM 1
#define LARGEST 2
#define TWO 3
uint merging = BEST;

Pick merge(Pick a, Pick b) {
  if (merging == SUM) return Pick(0, 0, a.logit + b.logit);
  if (merging == LARGEST) return Pick(0, 0, b.logit > a.logit ? b.logit : a.logit);
  if (merging == TWO)
    return Pick(max(a.key, b.key),
                uint(max(min(a.key, b.key), max(int(a.expert), int(b.expert)))), 0.0);
  if (b.key > a.key || b.key == a.key && b.expert < a.expert) return b;
  return a;
}

Pick across(Pick value, uint mask) {
  return Pick(subgroupShuffleXor(value.key, mask), subgroupShuffleXor(value.expert, mask),
              subgroupShuffleXor(value.logit, mask));
}

#define REDUCED Pick
#include "common/reduce.glsl"

uint turn = 0;

Pick reduced(Pick value, uint how) {
  merging = how;
  turn ^= 1;
  return reduce_threads(value, turn);
}

float reduced(float value, uint how) { return reduced(Pick(0, 0, value), how).logit; }

layout(push_constant, std430) uniform Arguments {
  uint64_t logits;
#if BIAS
  uint64_t bias;
#endif
  uint64_t ids, weights;
  uint tokens;
  float scale;
} args;

// Integers in the order of floats: zeros are equal. A NaN is the lowest of all. Drivers may take
// denormal numbers for zero where they compare floats.
const int none = int(0x80000000);

int order(float x) {
  const int bits = floatBitsToInt(x), magnitude = bits & 0x7fffffff;
  return magnitude > 0x7f800000 ? none : bits < 0 ? -magnitude : bits;
}

// A NaN counts as -inf.
float without_nan(float x) { return order(x) == none ? -INFINITY : x; }

// e^(x - y), x <= y, also where both are the same infinity.
float decay_to(float x, float y) {
  if (order(x) == order(y)) return 1.0;
  return x == -INFINITY || y == INFINITY ? 0.0 : exp(x - y);
}

// Of a logit relative to `base`: a common factor of all scores.
float score_of(float x, float base) {
#if SIGMOID
  return decay_to(min(x, 0.0), base) / (1.0 + decay_to(-abs(x), 0.0));
#else
  return decay_to(x, base);
#endif
}

uint expert_of(uint i, uint j) { return (i * LANES + thread_index() % LANES) * VEC + j; }

float x[ITEMS][VEC];  // the logits of this thread: those of experts expert_of(i, j)
int key[ITEMS][VEC];  // by which they are selected

void load_logits(uint token) {
  const uint64_t row = args.logits + uint64_t(token) * EXPERTS * IN_BYTES;
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    const bool any = token < args.tokens && expert_of(i, 0) < EXPERTS;
    X_RAW raw = X_RAW(0);
    if (any) raw = load_vector(row + uint64_t(expert_of(i, 0)) * IN_BYTES);
    float e[VEC];
    unpack(raw, e);
    [[unroll]] for (uint j = 0; j < VEC; ++j) x[i][j] = any ? without_nan(e[j]) : -INFINITY;
  }
}

// The largest logit of all experts, and the sum of the exponentials relative to it.
vec2 total_of() {
  float largest = -INFINITY, sum = 0.0;
  [[unroll]] for (uint i = 0; i < ITEMS; ++i)
    [[unroll]] for (uint j = 0; j < VEC; ++j) largest = x[i][j] > largest ? x[i][j] : largest;
  largest = reduced(largest, LARGEST);
  [[unroll]] for (uint i = 0; i < ITEMS; ++i)
    [[unroll]] for (uint j = 0; j < VEC; ++j)
      if (expert_of(i, j) < EXPERTS) sum += decay_to(x[i][j], largest);
  return vec2(largest, reduced(sum, SUM));
}

void make_keys(vec2 total) {
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    [[unroll]] for (uint j = 0; j < VEC; ++j) {
      const uint expert = expert_of(i, j);
      float value = x[i][j];
#if BIAS
      if (expert < EXPERTS) {
#if SIGMOID
        value = score_of(value, 0.0);
#else
        value = total.x == -INFINITY ? 0.0 : score_of(value, total.x) / total.y;
#endif
        value = without_nan(value + F32(args.bias + uint64_t(expert) * 4).v);
      }
#endif
      key[i][j] = expert < EXPERTS ? order(value) : none;
    }
  }
}

#if GROUPS > 1
// The inverse of order().
float in_order(int key) { return intBitsToFloat(key < 0 ? int(0x80000000) | -key : key); }

// Of the GROUPS of neighbouring experts only the TOP_GROUPS best ones keep their keys. Groups are
// compared by their largest key, with a bias by the sum of the two largest.
void keep_groups() {
  const uint size = EXPERTS / GROUPS;
  int score[GROUPS];
  [[unroll]] for (uint g = 0; g < GROUPS; ++g) {
    merging = TWO;
    Pick two = Pick(none, uint(none), 0.0);
    [[unroll]] for (uint i = 0; i < ITEMS; ++i)
      [[unroll]] for (uint j = 0; j < VEC; ++j)
        if (expert_of(i, j) / size == g) two = merge(two, Pick(key[i][j], uint(none), 0.0));
    two = reduced(two, TWO);
#if BIAS
    score[g] = order(without_nan(in_order(two.key) + in_order(int(two.expert))));
#else
    score[g] = two.key;
#endif
  }
  uint kept = 0;
  [[dont_unroll]] for (uint n = 0; n < TOP_GROUPS; ++n) {
    int most = none;
    uint best = GROUPS;
    [[unroll]] for (uint g = 0; g < GROUPS; ++g) {
      if ((kept >> g & 1) == 0 && (best == GROUPS || score[g] > most)) {
        most = score[g];
        best = g;
      }
    }
    kept |= 1u << best;
  }
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    [[unroll]] for (uint j = 0; j < VEC; ++j) {
      const uint group = expert_of(i, j) / size;
      if (group >= GROUPS || (kept >> group & 1) == 0) key[i][j] = none;
    }
  }
}
#endif

// The best of this thread's experts that are left.
Pick best_left() {
  Pick best = Pick(none, EXPERTS, -INFINITY);
  [[unroll]] for (uint i = 0; i < ITEMS; ++i)
    [[unroll]] for (uint j = 0; j < VEC; ++j)
      if (key[i][j] > best.key) best = Pick(key[i][j], expert_of(i, j), x[i][j]);
  return best;
}

// Picks s * LANES + lane of the token, for each s.
uint pick_expert[SLOTS];
float pick_logit[SLOTS];

void pick_all() {
  [[unroll]] for (uint s = 0; s < SLOTS; ++s) {
    pick_expert[s] = 0;
    pick_logit[s] = -INFINITY;
    const uint count = min(LANES, TOP_K - s * LANES);
    [[dont_unroll]] for (uint lane = 0; lane < count; ++lane) {
      const Pick best = reduced(best_left(), BEST);
      [[unroll]] for (uint i = 0; i < ITEMS; ++i)
        [[unroll]] for (uint j = 0; j < VEC; ++j)
          if (expert_of(i, j) == best.expert) key[i][j] = none;
      if (thread_index() % LANES == lane) {
        pick_expert[s] = best.expert;
        pick_logit[s] = best.logit;
      }
    }
  }
}

bool has_pick(uint s) { return s * LANES + thread_index() % LANES < TOP_K; }

// Replaces the picks' logits by their scores; returns what they are divided by.
float weigh(vec2 total) {
  float base = total.x, sum = total.y;
#if RENORMALISE
  base = -INFINITY;
  [[unroll]] for (uint s = 0; s < SLOTS; ++s)
    base = pick_logit[s] > base ? pick_logit[s] : base;
  base = reduced(base, LARGEST);
#endif
#if SIGMOID
  base = RENORMALISE != 0 && base < 0.0 ? base : 0.0;
#endif
  [[unroll]] for (uint s = 0; s < SLOTS; ++s)
    pick_logit[s] = has_pick(s) && base > -INFINITY ? score_of(pick_logit[s], base) : 0.0;
#if RENORMALISE
  sum = 0.0;
  [[unroll]] for (uint s = 0; s < SLOTS; ++s) sum += pick_logit[s];
  sum = reduced(sum, SUM);
#elif SIGMOID
  sum = 1.0;
#endif
  return sum;
}

void main() {
  const uint token = workgroup() * (THREADS / LANES) + thread_index() / LANES;
  load_logits(token);
  vec2 total = vec2(0.0, 1.0);
#if !SIGMOID && (BIAS || !RENORMALISE)
  total = total_of();
#endif
  make_keys(total);
#if GROUPS > 1
  keep_groups();
#endif
  pick_all();
  const float sum = weigh(total);
  if (token >= args.tokens) return;
  [[unroll]] for (uint s = 0; s < SLOTS; ++s) {
    if (!has_pick(s)) continue;
    const uint64_t at = uint64_t(token) * TOP_K + s * LANES + thread_index() % LANES;
    I32(args.ids + at * 4).v = int(pick_expert[s]);
    F32(args.weights + at * 4).v = sum > 0.0 ? pick_logit[s] / sum * args.scale : 0.0;
  }
}
