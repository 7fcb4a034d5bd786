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

// The masses of what is nearer than a range and of all, and a bit for each element of a round that
// lies in the range.
struct Listing {
  u32 from, end, beyond;
  u32 near_low = 0, near_high = 0, all_low = 0, all_high = 0;

  GRETA_DEVICE Listing(Range range, u32 row_end)
      : from(range.from), end(smaller(range.from + range.span, row_end)), beyond(row_end) {}

  GRETA_DEVICE void add(u32 far, u32 weight, u32 number, RoundBits& noted) {
#if defined(GRETA_NVIDIA)
    // NVRTC selects the weight or 0, and then adds it.
    asm("{\n"
        ".reg .pred nearer, inside, any;\n"
        "setp.lt.u32 any, %4, %8;\n"
        "setp.lt.u32 nearer, %4, %6;\n"
        "@any add.cc.u32 %0, %0, %5;\n"
        "@any addc.u32 %1, %1, 0;\n"
        "@nearer add.cc.u32 %2, %2, %5;\n"
        "@nearer addc.u32 %3, %3, 0;\n"
        "}"
        : "+r"(all_low), "+r"(all_high), "+r"(near_low), "+r"(near_high)
        : "r"(far), "r"(weight), "r"(from), "r"(end), "r"(beyond));
#else
    add_to(all_low, all_high, far < beyond ? weight : 0);
    add_to(near_low, near_high, far < from ? weight : 0);
#endif
    if (far >= from && far < end) noted |= RoundBits(1) << number;
  }

  GRETA_DEVICE Sums sums() const {
    const u64 nearer = joined(near_low, near_high);
    return {0, nearer, joined(all_low, all_high) - nearer};
  }

 private:
  GRETA_DEVICE static void add_to(u32& low, u32& high, u32 weight) {
    low += weight;
    high += low < weight ? 1 : 0;
  }
};
