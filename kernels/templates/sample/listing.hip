// A thread's part of a pass over a row that sums weights and lists what lies in a range.
#pragma once

#include "sample/scan.hip"
#include "sample/walk.hip"

// Distances from `from` to from + span - 1.
struct Range {
  u32 from, span;
};

// A bit for each of a thread's elements in a round.
template <bool many>
struct Bits {
  typedef u32 Type;
};
template <>
struct Bits<true> {
  typedef u64 Type;
};
typedef Bits<(ITEMS * VEC > 32)>::Type RoundBits;

GRETA_DEVICE u32 lowest_bit(u32 bits) {
#if defined(GRETA_NVIDIA)
  return u32(__ffs(int(bits))) - 1;
#else
  return u32(__builtin_ctz(bits));
#endif
}
GRETA_DEVICE u32 lowest_bit(u64 bits) {
  return u32(bits) != 0 ? lowest_bit(u32(bits)) : 32 + lowest_bit(u32(bits >> 32));
}

GRETA_DEVICE u32 bit_length(u32 bits) {
#if defined(GRETA_NVIDIA)
  return 32 - u32(__clz(int(bits)));
#else
  return bits == 0 ? 0 : 32 - u32(__builtin_clz(bits));
#endif
}

// The smaller one; NaN only where both are.
GRETA_DEVICE float lesser(float a, float b) {
#if defined(GRETA_NVIDIA)
  return fminf(a, b);
#else
  return __builtin_fminf(a, b);
#endif
}

// The lanes of a wave that a loop has parted go on together. NVIDIA's assembler would else part
// them for the rounds that follow. All lanes.
GRETA_DEVICE void lanes_meet() {
#if defined(GRETA_NVIDIA)
  __syncwarp();
#endif
}

// Elements whose weights have a sum of 32 bits.
constexpr u32 summed = VEC % 8 == 0 ? 8 : VEC;
static_assert(u64(summed) * full_weight < u64(1) << 32 && VEC % summed == 0, "sums fit");

// The masses of what is nearer than a range and of all, and a bit for each element of a round that
// lies in the range. `limited`: tokens before `farthest` may have no probability.
template <bool limited>
struct Listing {
  u32 from, end, beyond;
  u64 nearer = 0, all = 0;
  u32 few_nearer = 0, few = 0;  // of up to `summed` elements

  GRETA_DEVICE Listing(Range range, u32 row_end)
      : from(range.from), end(smaller(range.from + range.span, row_end)), beyond(row_end) {}

  template <typename Noted>
  GRETA_DEVICE void add(u32 far, u32 weight, u32 number, Noted& noted) {
    const bool first = number % summed == 0, last = number % summed == summed - 1;
    const u32 own = !limited || far < beyond ? weight : 0;
    u32 near = far < from ? weight : 0;
#if defined(GRETA_NVIDIA)
    if constexpr (sizeof(Noted) == 4) {
      // Two comparisons in place of three.
      asm("{\n"
          ".reg .pred nearer, inside;\n"
          "setp.lt.u32 nearer, %2, %4;\n"
          "setp.lt.and.u32 inside, %2, %5, !nearer;\n"
          "selp.u32 %0, %3, 0, nearer;\n"
          "@inside or.b32 %1, %1, %6;\n"
          "}"
          : "=r"(near), "+r"(noted)
          : "r"(far), "r"(weight), "r"(from), "r"(end), "r"(1U << number % 32));
    } else {
      if (far >= from && far < end) noted |= Noted(1) << number;
    }
#else
    if (far >= from && far < end) noted |= Noted(1) << number;
#endif
    few = first ? own : few + own;
    few_nearer = first ? near : few_nearer + near;
    if (last) {
      all += few;
      nearer += few_nearer;
    }
  }

  GRETA_DEVICE Sums sums() const {
    return {0, nearer, all - nearer};
  }
};
