#pragma once

// Atomic operations on global and shared memory. Blocks run in parallel, so these are the
// processor's. Each returns the old value. As on a GPU they order nothing else: __threadfence()
// does.

#include "runtime/device/hip/host/language/float_formats.hpp"

template <typename T>
T atomicAdd(T* at, T value) {
  if constexpr (static_cast<T>(0.5) == 0) {
    return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
  } else {
    T old, sum;
    __atomic_load(at, &old, __ATOMIC_RELAXED);
    do {
      sum = old + value;
    } while (!__atomic_compare_exchange(at, &old, &sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old;
  }
}
template <typename T>
T atomicSub(T* at, T value) {
  return atomicAdd(at, static_cast<T>(-value));
}
template <typename T>
T atomicExch(T* at, T value) {
  T old;
  __atomic_exchange(at, &value, &old, __ATOMIC_RELAXED);
  return old;
}
template <typename T>
T atomicCAS(T* at, T expected, T value) {
  __atomic_compare_exchange(at, &expected, &value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}

namespace greta_host {

/// Replaces the value at an address by change(value).
template <typename T, typename Change>
T atomic_change(T* at, Change change) {
  T old, changed;
  __atomic_load(at, &old, __ATOMIC_RELAXED);
  do {
    changed = change(old);
  } while (
      !__atomic_compare_exchange(at, &old, &changed, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old;
}

}  // namespace greta_host

template <typename T>
T atomicMin(T* at, T value) {
  return greta_host::atomic_change(at, [value](T old) { return value < old ? value : old; });
}
template <typename T>
T atomicMax(T* at, T value) {
  return greta_host::atomic_change(at, [value](T old) { return old < value ? value : old; });
}
template <typename T>
T atomicAnd(T* at, T value) {
  return __atomic_fetch_and(at, value, __ATOMIC_RELAXED);
}
template <typename T>
T atomicOr(T* at, T value) {
  return __atomic_fetch_or(at, value, __ATOMIC_RELAXED);
}
template <typename T>
T atomicXor(T* at, T value) {
  return __atomic_fetch_xor(at, value, __ATOMIC_RELAXED);
}
/// old >= limit ? 0 : old + 1
inline unsigned atomicInc(unsigned* at, unsigned limit) {
  return greta_host::atomic_change(at,
                                   [limit](unsigned old) { return old >= limit ? 0 : old + 1; });
}
/// old == 0 || old > limit ? limit : old - 1
inline unsigned atomicDec(unsigned* at, unsigned limit) {
  return greta_host::atomic_change(
      at, [limit](unsigned old) { return old == 0 || old > limit ? limit : old - 1; });
}
