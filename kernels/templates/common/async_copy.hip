// Copies from device memory to shared memory that pass no registers and run beside the threads:
// cp.async on NVIDIA from sm_80 on, buffer loads to LDS on gfx942 and gfx950. A thread starts
// copies, closes a group of them, and waits for all but its latest groups; a block_barrier() after
// that shows the copies to the others. GRETA_ASYNC_COPY is 1 where there is such a thing.
#pragma once

#include "common/types.hip"

#if (defined(GRETA_NVIDIA) && __CUDA_ARCH__ >= 800) || defined(__gfx942__) ||  \
    defined(__gfx950__) || (defined(GRETA_HOST) && (GRETA_HOST == 80 || GRETA_HOST == 942))
#define GRETA_ASYNC_COPY 1
#else
#define GRETA_ASYNC_COPY 0
#endif

// Whether each lane may write where it likes.
#if GRETA_ASYNC_COPY && (defined(GRETA_NVIDIA) || (defined(GRETA_HOST) && GRETA_HOST == 80))
#define GRETA_LANE_COPY 1
#else
#define GRETA_LANE_COPY 0
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

#if GRETA_LANE_COPY
// Each lane copies `bytes`, 4, 8 or 16, from where it likes to where it likes; where not `inside`,
// nothing is read and zeros are written.
template <int bytes>
GRETA_DEVICE void copy_lane_async(SharedMemory shared, u32 to, const void* from, bool inside) {
#if defined(GRETA_NVIDIA)
  const u32 mine = shared.address + to;
  const int valid = inside ? bytes : 0;
  if constexpr (bytes == 16) {  // past the first-level cache
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(mine), "l"(from),
                 "r"(valid));
  } else {
    asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2, %3;" ::"r"(mine), "l"(from),
                 "n"(bytes), "r"(valid));
  }
#else
  greta_host::copy_async(shared.bytes + to, from, bytes, inside ? bytes : 0);
#endif
}
#endif

// Each lane copies `bytes`; in shared memory the lanes of a wave follow each other from `to` on. In
// device memory a lane's bytes are at base + from; where not `inside`, zeros are written instead.
// `to` and `base` are the same for the whole wave. `bytes` are 4 or 16, on NVIDIA 8 as well, and
// all addresses multiples of that.
template <int bytes>
GRETA_DEVICE void copy_async(SharedMemory shared, u32 to, const u8* base, u32 from, bool inside) {
#if GRETA_LANE_COPY
  copy_lane_async<bytes>(shared, to + lane_index() * bytes, base + from, inside);
#elif defined(GRETA_AMD)
  // A buffer of 2 GiB from `base` on; what is read past its end is 0. Not clang's builtin: behind
  // that, it would wait for all copies at the next read of shared memory.
  typedef u32 Descriptor __attribute__((vector_size(16)));
  typedef const __attribute__((address_space(3))) u8 Shared;
  const u64 address = reinterpret_cast<u64>(base);
  const Descriptor buffer = {u32(address), u32(address >> 32), 0x80000000U, 0x00020000U};
  const u32 offset = inside ? from : 0x80000000U;
  const u32 first = u32(reinterpret_cast<__UINTPTR_TYPE__>((Shared*)shared.bytes)) + to;
  if constexpr (bytes == 16) {
    asm volatile("s_nop 0\n\tbuffer_load_dwordx4 %0, %1, 0 offen lds" ::"v"(offset), "s"(buffer),
                 "{m0}"(first)
                 : "memory");
  } else {
    asm volatile("s_nop 0\n\tbuffer_load_dword %0, %1, 0 offen lds" ::"v"(offset), "s"(buffer),
                 "{m0}"(first)
                 : "memory");
  }
#else
  static const u32 zeros[4] = {};
  const void* const source = inside ? static_cast<const void*>(base + from) : zeros;
  greta_host::load_to_shared(source, shared.bytes + to, bytes);
#endif
}

#if defined(GRETA_AMD)
// As copy_async(), `count` copies of each lane, at most four, of which none is outside. In shared
// memory they follow each other. Copy i of a lane is at base + k_bytes + from[i] in device memory,
// less together_bytes<bytes>(i): an instruction adds its offset to both addresses.
template <int bytes>
GRETA_DEVICE constexpr u32 together_bytes(u32 i) {
  return (3 - i) * 64 * bytes;
}
template <int bytes>
GRETA_DEVICE void copy_together(SharedMemory shared, u32 to, const u8* base, const u32* from,
                                u32 count, u32 k_bytes) {
  typedef u32 Descriptor __attribute__((vector_size(16)));
  typedef const __attribute__((address_space(3))) u8 Shared;
  const u64 address = reinterpret_cast<u64>(base) - together_bytes<bytes>(0);
  const Descriptor buffer = {u32(address), u32(address >> 32), 0xffffffffU, 0x00020000U};
  const u32 first = u32(reinterpret_cast<__UINTPTR_TYPE__>((Shared*)shared.bytes)) + to;
#define GRETA_FIRST_COPY "s_nop 0\n\t"  // between writing m0 and using it
#define GRETA_COPY(x4, i, offset) \
  "buffer_load_dword" x4 " %" #i ", %1, %2 offen offset:" #offset " lds\n\t"
#define GRETA_COPY_OPERANDS "{m0}"(first), "s"(buffer), "s"(k_bytes), "v"(from[0])
#define GRETA_COPIES(x4, a, b, c)                                                                 \
  if (count == 1) {                                                                               \
    asm volatile(GRETA_FIRST_COPY GRETA_COPY(x4, 3, 0)::GRETA_COPY_OPERANDS : "memory");          \
  } else if (count == 2) {                                                                        \
    asm volatile(GRETA_FIRST_COPY GRETA_COPY(x4, 3, 0) GRETA_COPY(x4, 4, a)::GRETA_COPY_OPERANDS, \
                 "v"(from[1])                                                                     \
                 : "memory");                                                                     \
  } else if (count == 3) {                                                                        \
    asm volatile(GRETA_FIRST_COPY GRETA_COPY(x4, 3, 0) GRETA_COPY(x4, 4, a)                       \
                     GRETA_COPY(x4, 5, b)::GRETA_COPY_OPERANDS,                                   \
                 "v"(from[1]), "v"(from[2])                                                       \
                 : "memory");                                                                     \
  } else {                                                                                        \
    asm volatile(GRETA_FIRST_COPY GRETA_COPY(x4, 3, 0) GRETA_COPY(x4, 4, a) GRETA_COPY(x4, 5, b)  \
                     GRETA_COPY(x4, 6, c)::GRETA_COPY_OPERANDS,                                   \
                 "v"(from[1]), "v"(from[2]), "v"(from[3])                                         \
                 : "memory");                                                                     \
  }
  if constexpr (bytes == 16) {
    GRETA_COPIES("x4", 1024, 2048, 3072)
  } else {
    static_assert(bytes == 4, "copies of 4 or 16 bytes");
    GRETA_COPIES("", 256, 512, 768)
  }
#undef GRETA_COPIES
#undef GRETA_COPY_OPERANDS
#undef GRETA_COPY
#undef GRETA_FIRST_COPY
}
#endif

GRETA_DEVICE void close_copies() {
#if defined(GRETA_NVIDIA)
  asm volatile("cp.async.commit_group;");
#elif defined(GRETA_HOST) && GRETA_HOST == 80
  greta_host::copy_commit();
#endif
}

// All groups are done but the `pending` latest, which have `copies` copies of this thread each.
template <int pending, int copies>
GRETA_DEVICE void wait_for_copies() {
#if defined(GRETA_NVIDIA)
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#elif defined(GRETA_AMD)
  asm volatile("s_waitcnt vmcnt(%0)" ::"n"(pending * copies < 63 ? pending * copies : 63)
               : "memory");
#elif GRETA_HOST == 80
  greta_host::copy_wait(pending);
#else
  greta_host::load_wait(pending * copies);
#endif
}

#endif  // GRETA_ASYNC_COPY
