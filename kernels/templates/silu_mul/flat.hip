// out = silu(gate) * up. GAP: both are in one tensor, whose rows have so many elements of gate and then of
// up; 0: in two.
#if !defined(GAP)
#error "GAP must be defined"
#endif

#include "common/activation.hip"
#include "common/map.hip"

struct SiluMul {
  GRETA_DEVICE static float of(const float (&x)[2]) { return silu(x[0]) * x[1]; }
};

#if GAP
GRETA_KERNEL(THREADS)
silu_mul_flat(const In* GRETA_READ x, Out* __restrict__ out, u64 count) {
  begin_launch();
  map<SiluMul, GAP>({x, x + GAP}, out, count);
}
#else
GRETA_KERNEL(THREADS)
silu_mul_flat(const In* GRETA_READ gate, const In* GRETA_READ up, Out* __restrict__ out,
              u64 count) {
  begin_launch();
  map<SiluMul>({gate, up}, out, count);
}
#endif
