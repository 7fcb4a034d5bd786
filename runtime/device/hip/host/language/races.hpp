#pragma once

// With GRETA_HOST_RACES, a kernel is built with -fsanitize=thread, but without the runtime of
// ThreadSanitizer, which knows no fibers of one OS thread. The calls that the compiler adds, by the
// interface of that runtime, go to the executor.

#include "runtime/device/hip/host/language/thread.hpp"

namespace greta_host {

#if defined(GRETA_HOST_RACES)
constexpr bool finds_races = true;
#else
constexpr bool finds_races = false;
#endif

}  // namespace greta_host

#if defined(GRETA_HOST_RACES)

#if defined(__clang__)
#define GRETA_HOST_PLAIN __attribute__((used, noinline, disable_sanitizer_instrumentation))
#define GRETA_HOST_EXIT_ARGUMENT
#else
#define GRETA_HOST_PLAIN __attribute__((used, noinline, no_sanitize_thread))
#define GRETA_HOST_EXIT_ARGUMENT void*
#endif

namespace greta_host {

GRETA_HOST_PLAIN inline void accessed(const volatile void* at, size_t bytes, Access access,
                                      const void* code) {
  const void* const plain = const_cast<const void*>(at);
  if (plain < current->entry->shared || plain >= current->entry->shared_end) return;
  current->calls->access(*current, plain, unsigned(bytes), access, code);
}

}  // namespace greta_host

#define GRETA_HOST_ACCESS(name, bytes, access)                                                \
  GRETA_HOST_PLAIN inline void __tsan_##name(void* at) {                                      \
    greta_host::accessed(at, bytes, greta_host::Access::access, __builtin_return_address(0)); \
  }
#define GRETA_HOST_ACCESSES(bytes)                      \
  GRETA_HOST_ACCESS(read##bytes, bytes, read)           \
  GRETA_HOST_ACCESS(write##bytes, bytes, write)         \
  GRETA_HOST_ACCESS(unaligned_read##bytes, bytes, read) \
  GRETA_HOST_ACCESS(unaligned_write##bytes, bytes, write)

#define GRETA_HOST_CHANGE(bits, type, name)                                                       \
  GRETA_HOST_PLAIN inline type __tsan_atomic##bits##_##name(volatile void* at, type value, int) { \
    greta_host::accessed(at, sizeof(type), greta_host::Access::atomic_write,                      \
                         __builtin_return_address(0));                                            \
    return __atomic_##name((volatile type*)at, value, __ATOMIC_SEQ_CST);                          \
  }
#define GRETA_HOST_COMPARE(bits, type, strength, weak)                                   \
  GRETA_HOST_PLAIN inline bool __tsan_atomic##bits##_compare_exchange_##strength(        \
      volatile void* at, void* expected, type value, int, int) {                         \
    greta_host::accessed(at, sizeof(type), greta_host::Access::atomic_write,             \
                         __builtin_return_address(0));                                   \
    return __atomic_compare_exchange_n((volatile type*)at, (type*)expected, value, weak, \
                                       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);              \
  }
#define GRETA_HOST_ATOMICS(bits, type)                                                           \
  GRETA_HOST_PLAIN inline type __tsan_atomic##bits##_load(const volatile void* at, int) {        \
    greta_host::accessed(at, sizeof(type), greta_host::Access::atomic_read,                      \
                         __builtin_return_address(0));                                           \
    return __atomic_load_n((const volatile type*)at, __ATOMIC_SEQ_CST);                          \
  }                                                                                              \
  GRETA_HOST_PLAIN inline void __tsan_atomic##bits##_store(volatile void* at, type value, int) { \
    greta_host::accessed(at, sizeof(type), greta_host::Access::atomic_write,                     \
                         __builtin_return_address(0));                                           \
    __atomic_store_n((volatile type*)at, value, __ATOMIC_SEQ_CST);                               \
  }                                                                                              \
  GRETA_HOST_PLAIN inline type __tsan_atomic##bits##_exchange(volatile void* at, type value,     \
                                                              int) {                             \
    greta_host::accessed(at, sizeof(type), greta_host::Access::atomic_write,                     \
                         __builtin_return_address(0));                                           \
    return __atomic_exchange_n((volatile type*)at, value, __ATOMIC_SEQ_CST);                     \
  }                                                                                              \
  GRETA_HOST_PLAIN inline type __tsan_atomic##bits##_compare_exchange_val(                       \
      volatile void* at, type expected, type value, int, int) {                                  \
    greta_host::accessed(at, sizeof(type), greta_host::Access::atomic_write,                     \
                         __builtin_return_address(0));                                           \
    __atomic_compare_exchange_n((volatile type*)at, &expected, value, false, __ATOMIC_SEQ_CST,   \
                                __ATOMIC_SEQ_CST);                                               \
    return expected;                                                                             \
  }                                                                                              \
  GRETA_HOST_COMPARE(bits, type, strong, false)                                                  \
  GRETA_HOST_COMPARE(bits, type, weak, true)                                                     \
  GRETA_HOST_CHANGE(bits, type, fetch_add)                                                       \
  GRETA_HOST_CHANGE(bits, type, fetch_sub)                                                       \
  GRETA_HOST_CHANGE(bits, type, fetch_and)                                                       \
  GRETA_HOST_CHANGE(bits, type, fetch_or)                                                        \
  GRETA_HOST_CHANGE(bits, type, fetch_xor)                                                       \
  GRETA_HOST_CHANGE(bits, type, fetch_nand)

extern "C" {

GRETA_HOST_ACCESSES(1)
GRETA_HOST_ACCESSES(2)
GRETA_HOST_ACCESSES(4)
GRETA_HOST_ACCESSES(8)
GRETA_HOST_ACCESSES(16)
GRETA_HOST_ATOMICS(8, unsigned char)
GRETA_HOST_ATOMICS(16, unsigned short)
GRETA_HOST_ATOMICS(32, unsigned)
GRETA_HOST_ATOMICS(64, unsigned long)

GRETA_HOST_PLAIN inline void __tsan_init() {}
GRETA_HOST_PLAIN inline void __tsan_func_entry(void* code) {
  greta_host::current->calls->call(*greta_host::current, code);
}
GRETA_HOST_PLAIN inline void __tsan_func_exit(GRETA_HOST_EXIT_ARGUMENT) {
  greta_host::current->calls->call(*greta_host::current, nullptr);
}
GRETA_HOST_PLAIN inline void __tsan_read_range(void* at, unsigned long bytes) {
  greta_host::accessed(at, bytes, greta_host::Access::read, __builtin_return_address(0));
}
GRETA_HOST_PLAIN inline void __tsan_write_range(void* at, unsigned long bytes) {
  greta_host::accessed(at, bytes, greta_host::Access::write, __builtin_return_address(0));
}
GRETA_HOST_PLAIN inline void __tsan_atomic_thread_fence(int) {
  greta_host::current->calls->fence(*greta_host::current);
}
GRETA_HOST_PLAIN inline void __tsan_atomic_signal_fence(int) {}

// Of clang, which names the functions of memory so; g++ leaves them as they are.
#if defined(__clang__)
#define GRETA_HOST_MEMORY(name) __tsan_##name
#else
#define GRETA_HOST_MEMORY(name) name
#endif
#define GRETA_HOST_SYMBOL_(name) #name
#define GRETA_HOST_SYMBOL(name) GRETA_HOST_SYMBOL_(name)

GRETA_HOST_PLAIN inline void* greta_host_move(void* to, const void* from, unsigned long bytes,
                                              const void* code) {
  greta_host::accessed(from, bytes, greta_host::Access::read, code);
  greta_host::accessed(to, bytes, greta_host::Access::write, code);
  auto* const target = static_cast<volatile unsigned char*>(to);
  const auto* const source = static_cast<const unsigned char*>(from);
  if (target < source) {
    for (unsigned long i = 0; i < bytes; ++i) target[i] = source[i];
  } else {
    for (unsigned long i = bytes; i-- > 0;) target[i] = source[i];
  }
  return to;
}
void* greta_host_memcpy(void* to, const void* from,
                        unsigned long bytes) __asm__(GRETA_HOST_SYMBOL(GRETA_HOST_MEMORY(memcpy)));
void* greta_host_memmove(void* to, const void* from, unsigned long bytes) __asm__(
    GRETA_HOST_SYMBOL(GRETA_HOST_MEMORY(memmove)));
void* greta_host_memset(void* to, int value,
                        unsigned long bytes) __asm__(GRETA_HOST_SYMBOL(GRETA_HOST_MEMORY(memset)));
GRETA_HOST_PLAIN void* greta_host_memcpy(void* to, const void* from, unsigned long bytes) {
  return greta_host_move(to, from, bytes, __builtin_return_address(0));
}
GRETA_HOST_PLAIN void* greta_host_memmove(void* to, const void* from, unsigned long bytes) {
  return greta_host_move(to, from, bytes, __builtin_return_address(0));
}
GRETA_HOST_PLAIN void* greta_host_memset(void* to, int value, unsigned long bytes) {
  greta_host::accessed(to, bytes, greta_host::Access::write, __builtin_return_address(0));
  auto* const target = static_cast<volatile unsigned char*>(to);
  for (unsigned long i = 0; i < bytes; ++i) target[i] = static_cast<unsigned char>(value);
  return to;
}
}

#undef GRETA_HOST_ACCESS
#undef GRETA_HOST_ACCESSES
#undef GRETA_HOST_ATOMICS
#undef GRETA_HOST_CHANGE
#undef GRETA_HOST_COMPARE
#undef GRETA_HOST_MEMORY
#undef GRETA_HOST_SYMBOL
#undef GRETA_HOST_SYMBOL_

#endif
