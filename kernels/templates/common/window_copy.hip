// Copies of 16 bytes for each lane from device memory to shared memory, past whose end zeros are
// read: buffer loads to LDS of gfx950. wait_for_copies() counts each of them.
#pragma once

#include "common/async_copy.hip"
#include "common/uniform.hip"

// Device memory from `base` on, less than 2 GiB, the same for the whole wave; zeros lie behind it.
struct ReadWindow {
  const u8* base;
  u32 bytes;

  // No window reaches so far.
  static constexpr u32 outside = 0x80000000U;
};

// Each lane copies what lies `from` bytes into the window, a multiple of 16. In shared memory the
// lanes of a wave follow each other from `to` on, which is the same for the whole wave.
GRETA_DEVICE void copy_window_async(SharedMemory shared, u32 to, const ReadWindow& window, u32 from) {
#if defined(GRETA_AMD)
  // As in copy_async(), no builtin: behind that, the compiler would wait for all copies at the next
  // read of shared memory.
  typedef u32 Descriptor __attribute__((vector_size(16)));
  typedef const __attribute__((address_space(3))) u8 Shared;
  const u64 address = reinterpret_cast<u64>(window.base);
  const Descriptor buffer = {same_in_wave(u32(address)), same_in_wave(u32(address >> 32)),
                             same_in_wave(window.bytes), 0x00020000U};
  const u32 first = u32(reinterpret_cast<__UINTPTR_TYPE__>((Shared*)shared.bytes)) + to;
  asm volatile("s_nop 0\n\tbuffer_load_dwordx4 %0, %1, 0 offen lds" ::"v"(from), "s"(buffer),
               "{m0}"(first)
               : "memory");
#elif defined(GRETA_HOST)
  static const u32 zeros[4] = {};
  const bool inside = from < window.bytes;
  const void* const source = inside ? static_cast<const void*>(window.base + from) : zeros;
  greta_host::load_to_shared(source, shared.bytes + to, 16);
#else
#error "no copies from windows that this file knows"
#endif
}
