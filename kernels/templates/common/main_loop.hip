// What keeps main loops on AMD GPUs short. On other devices it has no effect, but for barriers.
#pragma once

#include "common/device.hip"
#include "common/uniform.hip"

// A number that the compiler keeps in a register: it would compute addresses anew in each turn of a
// loop, and often could not see that one is a constant apart from another.
GRETA_DEVICE u32 kept(u32 number) {
#if defined(GRETA_AMD)
  asm volatile("" : "+v"(number));
#endif
  return number;
}

// The same for a number, and an address, that all lanes have.
GRETA_DEVICE u32 kept_by_all(u32 number) {
#if defined(GRETA_AMD)
  number = same_in_wave(number);
  asm volatile("" : "+s"(number));
#endif
  return number;
}

GRETA_DEVICE const u8* kept_by_all(const u8* address) {
#if defined(GRETA_AMD)
  // Else the compiler would not know that it is one in device memory.
  typedef const __attribute__((address_space(1))) u8 Global;
  Global* global = (Global*)address;
  asm volatile("" : "+s"(global));
  address = (const u8*)global;
#endif
  return address;
}

// All but the `pending` latest reads of shared memory are done, and with wait_for_loads() all loads
// of device memory: one wait in place of one for each product or store that needs some of them. The
// compiler knows these waits, and adds what is missing.
#if defined(__GFX9__)
template <u32 pending>
GRETA_DEVICE void wait_for_fragments() {
  __builtin_amdgcn_s_waitcnt(0xc07f | (pending < 15 ? pending : 15) << 8);
}
GRETA_DEVICE void wait_for_loads() {
  __builtin_amdgcn_s_waitcnt(0x0f70);
}
#else
template <u32>
GRETA_DEVICE void wait_for_fragments() {}
GRETA_DEVICE void wait_for_loads() {}
#endif

// Waves of higher priority issue first; 0 is the usual one.
template <int priority>
GRETA_DEVICE void set_priority() {
#if defined(GRETA_AMD)
  __builtin_amdgcn_s_setprio(priority);
#endif
}

// Whether the compiler knows what interleave() needs. That of hiprtc 5.2 does not.
#if defined(GRETA_HOST)
#define GRETA_INTERLEAVES 1
#elif defined(GRETA_AMD)
#define GRETA_INTERLEAVES __has_builtin(__builtin_amdgcn_sched_group_barrier)
#else
#define GRETA_INTERLEAVES 0
#endif

// Since the last keep_order() there are `all` matrix instructions, and accesses to memory: first
// `ahead`, then `early` and `late` ones. This asks the compiler to put `products` matrix
// instructions between two accesses, the early ones at the beginning and the late ones at the end.
// Accesses stay in the order of the source.
template <u32 ahead, u32 early, u32 late, u32 products, u32 all>
GRETA_DEVICE void interleave() {
#if defined(GRETA_AMD) && GRETA_INTERLEAVES
  constexpr int matrix = 0x8, memory = 0x10 | 0x80;
  __builtin_amdgcn_sched_group_barrier(memory, ahead, 0);
  GRETA_UNROLL
  for (u32 i = 0; i < early; ++i) {
    __builtin_amdgcn_sched_group_barrier(matrix, products, 0);
    __builtin_amdgcn_sched_group_barrier(memory, 1, 0);
  }
  constexpr u32 spread = (early + late) * products;
  if constexpr (all > spread) __builtin_amdgcn_sched_group_barrier(matrix, all - spread, 0);
  GRETA_UNROLL
  for (u32 i = 0; i < late; ++i) {
    __builtin_amdgcn_sched_group_barrier(memory, 1, 0);
    __builtin_amdgcn_sched_group_barrier(matrix, products, 0);
  }
#endif
}

// As block_barrier(), for shared memory alone: accesses to device memory stay under way.
#if defined(GRETA_AMD) && __clang_major__ >= 19
GRETA_DEVICE void shared_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup", "local");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local");
}
#elif defined(GRETA_HOST)
GRETA_DEVICE void shared_barrier(greta_host::Site site = greta_host::here("shared_barrier")) {
  __syncthreads(site);
}
#else
GRETA_DEVICE void shared_barrier() {
  block_barrier();
}
#endif

// As shared_barrier(), of AMD: waves meet at different ones, too. Each counts those that arrived.
// Not the fences of older compilers, which would wait for device memory.
GRETA_DEVICE void loose_barrier() {
#if defined(GRETA_HOST) && GRETA_HOST != 80
  greta_host::s_barrier();
#elif defined(GRETA_AMD) && __clang_major__ < 19
  asm volatile("s_waitcnt lgkmcnt(0)\n\ts_barrier" ::: "memory");
#else
  shared_barrier();
#endif
}
