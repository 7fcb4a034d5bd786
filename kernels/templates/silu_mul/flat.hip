// out = silu(gate) * up. PACKED: both are in one tensor, gate in the first half of each row.
#if !defined(PACKED)
#error "PACKED must be defined"
#endif

#include "common/activation.hip"
#include "common/map.hip"

struct SiluMul {
  GRETA_DEVICE static float of(const float (&x)[2]) { return silu(x[0]) * x[1]; }
};

#if PACKED
GRETA_KERNEL(THREADS)
silu_mul_flat(const In* GRETA_READ x, Out* __restrict__ out, u64 count, u32 cols) {
  begin_launch();
  // One row has no gap; without divisions its loads start earlier.
  map<SiluMul>({x, x + cols}, out, count, cols / VEC, count > cols ? cols : 0);
}
#else
GRETA_KERNEL(THREADS)
silu_mul_flat(const In* GRETA_READ gate, const In* GRETA_READ up, Out* __restrict__ out,
              u64 count) {
  begin_launch();
  map<SiluMul>({gate, up}, out, count);
}
#endif
