// The penalties of tokens that a row's history has, in place.
#pragma once

#include "common/in_out.hip"
#include "sample/numbers.hip"

// A rounded product, which no sum contracts.
GRETA_DEVICE float product(float a, float b) {
#if defined(GRETA_NVIDIA)
  return __fmul_rn(a, b);
#elif defined(GRETA_AMD)
  float result = a * b;
  asm("" : "+v"(result));
  return result;
#else
  volatile float result = a * b;
  return result;
#endif
}

GRETA_DEVICE bool is_finite(float x) {
  return (bits_of(x) & 0x7f800000U) != 0x7f800000U;
}

// Returns the old value.
GRETA_DEVICE u32 take(u32* count) {
#if defined(GRETA_AMD)
  return __hip_atomic_exchange(count, 0U, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
#elif defined(GRETA_NVIDIA)
  return atomicExch(count, 0U);
#else
  return __atomic_exchange_n(count, 0U, __ATOMIC_RELAXED);
#endif
}

// Changes the logits of the tokens from column `first` to `end` of a row. `counts` has a number for
// each logit of the row, which is 0 before and after: the tokens are counted, and whoever takes a
// token's count applies its penalties. All threads; the block's next barrier, with fences, shows
// the logits to all of them.
GRETA_DEVICE void penalise(In* logits, const float* p, const int* tokens, u32* counts, u32 length,
                           u32 first, u32 end) {
  const float repetition = is_finite(p[0]) ? p[0] : 1;
  const float frequency = is_finite(p[1]) ? p[1] : 0, presence = is_finite(p[2]) ? p[2] : 0;
  const u32 span = end - first;
  for (u32 i = thread_index(); i < length; i += THREADS) {
    if (u32(tokens[i]) - first < span) atomic_add(counts + tokens[i], 1);
  }
  release_to_device();
  block_barrier();
  acquire_from_device();
  for (u32 i = thread_index(); i < length; i += THREADS) {
    const int token = tokens[i];
    if (u32(token) - first >= span) continue;
    const u32 count = take(counts + token);
    if (count == 0) continue;
    float value = to_float(logits[token]);
    if (!is_finite(value)) continue;
    const bool normal = (bits_of(value) & 0x7fffffffU) >= 0x00800000U;
    if (normal && repetition >= 0x1p-126f) {
      const float quotient = divide(value, repetition);
      value = value > 0 ? quotient : product(value, repetition);
    }
    value = value - product(frequency, float(count)) - presence;
    logits[token] = narrow<In>(value);
  }
}
