// What tma_groups.hip and tma_blocks.hip share where weights are rounded (tma.hip): all products of a tile
// are added to its sums by matrix cores. Those of one unit run while threads make operands of the next one.
#pragma once

constexpr u32 negative_zeros = 0x80008000U;  // whatever is added to them stays what it is

// x factor + added of two elements, each rounded once.
GRETA_DEVICE u32 rounded(u32 x, u32 factor, u32 added) {
#if IN_F16
  return scaled_sums(x, factor, added);
#elif defined(GRETA_NVIDIA)
  u32 pair;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(pair) : "r"(x), "r"(factor), "r"(added));
  return pair;
#else
  float half[2];
  for (u32 i = 0; i < 2; ++i) {
    const auto of = [i](u32 pair) { return to_float(bf16{u16(pair >> 16 * i)}); };
    half[i] = multiply_add(of(x), of(factor), of(added));
  }
  return narrow_bf16(half[0]).bits | u32(narrow_bf16(half[1]).bits) << 16;
#endif
}

// A number as two elements of A's type.
GRETA_DEVICE u32 twice_rounded(float x) {
#if IN_F16
  return twice_f16(x);
#else
  return twice_bf16(x);
#endif
}

#if FORMAT == 6
// 2^(scale - 127) twice, in bf16, which has it, or NaN for 255.
GRETA_DEVICE u32 twice(Scale scale) {
  return (scale == 255 ? 0x7fc0U : scale == 0 ? 0x0040U : u32(scale) << 7) * 0x10001U;
}
#elif SCALES_BESIDE
// Scales have A's type.
GRETA_DEVICE u32 twice(Scale scale) { return scale.bits * 0x10001U; }
#endif

// The buffers of A whose products may run: that of this step, and that of the step before it.
struct RowsInUse {
  Ring<STAGES>& now;
  Ring<STAGES> before;
  bool earlier = false;

  GRETA_DEVICE explicit RowsInUse(Ring<STAGES>& ring) : now(ring), before(ring) {}
  // Returns where the step's elements begin.
  GRETA_DEVICE u32 wait() const {
    now.filled().wait(now.parity);
    return now.buffer() * TileA::bytes;
  }
  // The products of the step before are done.
  GRETA_DEVICE void release_earlier() {
    if (earlier) before.release();
  }
  GRETA_DEVICE void next() {
    before = now;
    earlier = true;
    now.next();
  }
  // All products are done then, and sums may be read.
  GRETA_DEVICE void finish(Sums (&totals)[products]) {
    wait_for_products<0>();
    GRETA_UNROLL
    for (u32 product = 0; product < products; ++product) claim_sums(totals[product]);
    before.release();
  }
};
