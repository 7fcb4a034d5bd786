#pragma once

// The language of kernels: HIP's words, and who and where the running thread is.
//
// A library is loaded once for each OS thread that runs blocks, and such a thread runs one block at
// a time: what is static in a library belongs to one block. So __shared__ is `static`, sanitizers
// know each array's bounds, and the running thread is a plain variable.

#include <stddef.h>
#include <stdint.h>

#include "abi.hpp"

#define __global__ __attribute__((visibility("default")))
#define __device__
#define __host__
#define __constant__ static const
#define __shared__ static
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#ifndef __align__
#define __align__(bytes) __attribute__((aligned(bytes)))
#endif
#define __restrict__ __restrict

#define threadIdx (::greta_host::current->index)
#define blockIdx (::greta_host::current->block)
#define blockDim (::greta_host::current->launch->block)
#define gridDim (::greta_host::current->launch->grid)

/// What the device imitates: 80 (sm_80), 942 (gfx942), 1100 (gfx1100) or 1201 (gfx1201).
#ifndef GRETA_HOST
#error "GRETA_HOST must be 80, 942, 1100 or 1201"
#endif
constexpr int warpSize = GRETA_HOST == 942 ? 64 : 32;

namespace greta_host {

/// The thread that runs; the executor changes it whenever it switches fibers.
extern Thread* current;

/// The place in the kernel's text that calls the function which has this as its default argument.
constexpr Site here(const char* what, const char* file, int line) {
  return {what, file, line};
}
#define GRETA_HOST_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

[[noreturn]] inline void fail(Site site, const char* why) {
  current->calls->fail(*current, site, why);
  __builtin_unreachable();
}

/// All threads of the block arrive before any goes on.
inline void block_barrier(const char* what, GRETA_HOST_HERE) {
  current->calls->meet_block(*current, here(what, file, line));
}

/// The launch's dynamic shared memory; aligned to 128 bytes.
template <typename T>
T* dynamic_shared();

}  // namespace greta_host

inline void __syncthreads(GRETA_HOST_HERE) {
  greta_host::block_barrier("__syncthreads", file, line);
}
