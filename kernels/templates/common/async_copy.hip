// Copies from device memory to shared memory that pass no registers and run beside the threads:
// cp.async on NVIDIA from sm_80 on, global_load_lds on gfx942 and gfx950. A thread starts copies,
// closes a group of them, and waits for all but its latest groups; a block_barrier() after that
// shows the copies to the others.
//
//   GRETA_ASYNC_COPY   1 where there is such a thing
//   GRETA_ASYNC_ZEROS  1 where a copy can fill with zeros instead
#pragma once

#include "common/types.hip"

#if (defined(GRETA_NVIDIA) && __CUDA_ARCH__ >= 800) || (defined(GRETA_HOST) && GRETA_HOST == 80)
#define GRETA_ASYNC_COPY 1
#define GRETA_ASYNC_ZEROS 1
#elif defined(__gfx942__) || defined(__gfx950__) || (defined(GRETA_HOST) && GRETA_HOST == 942)
#define GRETA_ASYNC_COPY 1
#define GRETA_ASYNC_ZEROS 0
#else
#define GRETA_ASYNC_COPY 0
#define GRETA_ASYNC_ZEROS 0
#endif

// The block's shared memory, as the instructions name it that know no other memory.
struct SharedMemory {
  u8* bytes;
#if defined(GRETA_NVIDIA)
  u32 address;
#endif
};

GRETA_DEVICE SharedMemory shared_memory(u8* bytes) {
#if defined(GRETA_NVIDIA)
  u64 address;
  asm("cvta.to.shared.u64 %0, %1;" : "=l"(address) : "l"(bytes));
  return {bytes, u32(address)};
#else
  return {bytes};
#endif
}

#if GRETA_ASYNC_COPY

// NVIDIA: `bytes` are 4, 8 or 16, and both addresses multiples of that; zeros are written where not
// `inside`. AMD: 4, on gfx950 also 16; the lanes of a wave write one behind the other, and all of
// them must be inside.
template <int bytes>
GRETA_DEVICE void copy_async(SharedMemory shared, u32 offset, const void* from, bool inside) {
#if defined(GRETA_NVIDIA)
  const u32 to = shared.address + offset;
  const int valid = inside ? bytes : 0;
  if constexpr (bytes == 16) {  // past the first-level cache
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid));
  } else {
    asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(bytes),
                 "r"(valid));
  }
#elif defined(GRETA_AMD)
  // Not the builtin: behind that, the compiler would wait for all copies at the next read of shared
  // memory.
  typedef const __attribute__((address_space(3))) u8 Shared;
  const u32 lane = u32(reinterpret_cast<__SIZE_TYPE__>((Shared*)(shared.bytes + offset)));
  const u32 first = u32(__builtin_amdgcn_readfirstlane(int(lane)));
  if constexpr (bytes == 16) {
    asm volatile("s_mov_b32 m0, %0\n\ts_nop 0\n\tglobal_load_lds_dwordx4 %1, off" ::"s"(first),
                 "v"(from) : "m0", "memory");
  } else {
    asm volatile("s_mov_b32 m0, %0\n\ts_nop 0\n\tglobal_load_lds_dword %1, off" ::"s"(first),
                 "v"(from) : "m0", "memory");
  }
#elif GRETA_ASYNC_ZEROS
  greta_host::copy_async(shared.bytes + offset, from, bytes, inside ? bytes : 0);
#else
  greta_host::load_to_shared(from, shared.bytes + (offset - lane_index() * bytes), bytes);
#endif
}

GRETA_DEVICE void close_copies() {
#if defined(GRETA_NVIDIA)
  asm volatile("cp.async.commit_group;");
#elif GRETA_ASYNC_ZEROS
  greta_host::copy_commit();
#endif
}

// All groups are done but the `pending` latest, which have `copies` copies of this thread each; where
// not `full`, the latest may have none, and all are waited for if they can't be told apart.
template <int pending, int copies>
GRETA_DEVICE void wait_for_copies(bool full) {
#if defined(GRETA_NVIDIA)
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#elif defined(GRETA_AMD)
  if (full) {
    asm volatile("s_waitcnt vmcnt(%0)" ::"n"(pending * copies < 63 ? pending * copies : 63)
                 : "memory");
  } else {
    asm volatile("s_waitcnt vmcnt(0)" ::: "memory");
  }
#elif GRETA_ASYNC_ZEROS
  greta_host::copy_wait(pending);
#else
  greta_host::load_wait(full ? pending * copies : 0);
#endif
}

#endif  // GRETA_ASYNC_COPY
