// Loads that the next loads_go_ahead() keeps in front of it: NVIDIA's assembler moves other loads of
// constant data behind such a place.
#pragma once

#include "common/types.hip"

// One, two or four words. `shared`: other waves load the same, which the first-level cache then keeps.
template <bool shared, int words>
GRETA_DEVICE Words<4 * words> load_ahead(const u8* from) {
#if defined(GRETA_NVIDIA)
  Words<4 * words> loaded;
  u32(&w)[words] = loaded.word;
  if constexpr (words == 4 && shared) {
    asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                 : "l"(from));
  } else if constexpr (words == 4) {
    asm volatile("ld.global.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                 : "l"(from));
  } else if constexpr (words == 2 && shared) {
    asm volatile("ld.global.v2.b32 {%0, %1}, [%2];" : "=r"(w[0]), "=r"(w[1]) : "l"(from));
  } else if constexpr (words == 2) {
    asm volatile("ld.global.L1::no_allocate.v2.b32 {%0, %1}, [%2];" : "=r"(w[0]), "=r"(w[1]) : "l"(from));
  } else if constexpr (shared) {
    asm volatile("ld.global.b32 %0, [%1];" : "=r"(w[0]) : "l"(from));
  } else {
    asm volatile("ld.global.L1::no_allocate.b32 %0, [%1];" : "=r"(w[0]) : "l"(from));
  }
  return loaded;
#else
  return load_words<4 * words>(from);
#endif
}
