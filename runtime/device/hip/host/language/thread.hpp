#pragma once

// The words of HIP that every kernel uses.
//
// A library is loaded once for each OS thread that runs blocks, and such a thread runs one block at
// a time: what is static in a library belongs to one block. So __shared__ is `static`, sanitizers
// know the bounds of each array, and the running thread is a plain variable. __constant__ variables
// lie in a section of their own; the copies of a library get the contents of the first.

#include <stddef.h>
#include <stdint.h>

#include "runtime/device/hip/host/language/abi.hpp"

#define __global__
#define __device__
#define __host__
#define __constant__ __attribute__((section("greta_constant"), used))
#define __shared__ static
#define __launch_bounds__(...)
// Ends the declaration that it stands in, and begins it again.
#define __cluster_dims__(x, y, z)                                            \
  greta_host_no_kernel();                                                    \
  template <>                                                                \
  inline constexpr ::greta_host::Index greta_host::cluster_dims<0>{x, y, z}; \
  extern "C" void
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __restrict__ __restrict

#define threadIdx (::greta_host::current->index)
#define blockIdx (::greta_host::current->block)
#define blockDim (::greta_host::current->launch->block)
#define gridDim (::greta_host::current->launch->grid)

#ifndef GRETA_HOST
#error "GRETA_HOST must be 80, 942, 1100 or 1201"
#endif
constexpr int warpSize = GRETA_HOST == 942 ? 64 : 32;

extern "C" {
/// Dynamic shared memory; GRETA_HOST_DYNAMIC_BYTES is the most that a launch can ask for.
alignas(128) inline unsigned char greta_host_dynamic[GRETA_HOST_DYNAMIC_BYTES];
// The linker's names for the library's zero-initialised memory: all that is __shared__.
extern unsigned char greta_host_shared __asm__("__bss_start");
extern unsigned char greta_host_shared_end __asm__("_end");
}

namespace greta_host {

/// The blocks of a cluster of the kernel, <0>, unless it has __cluster_dims__.
template <int>
inline constexpr Index cluster_dims{1, 1, 1};

// Not in zero-initialised memory.
__attribute__((section(".data"))) inline Thread* current = nullptr;

[[noreturn]] inline void fail(Site site, const char* why) {
  current->calls->fail(*current, site, why);
  __builtin_unreachable();
}

/// griddepcontrol.wait
inline void await_launches() {
  current->calls->await_launches(*current);
}

inline bool is_shared(const void* at) {
  return at >= current->entry->shared && at < current->entry->shared_end;
}

/// The launch's dynamic shared memory, aligned to 128 bytes.
template <typename T>
T* dynamic_shared() {
  return reinterpret_cast<T*>(greta_host_dynamic);
}

}  // namespace greta_host

inline void __syncthreads(greta_host::Site site = greta_host::here("__syncthreads")) {
  greta_host::current->calls->meet_block(*greta_host::current, site);
}

inline void __threadfence() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
inline void __threadfence_block() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
inline void __threadfence_system() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
