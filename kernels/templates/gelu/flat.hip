// x times the share of a normal distribution below x; EXACT 0: by its approximation with tanh.
#if !defined(EXACT)
#error "EXACT must be defined"
#endif

#include "common/activation.hip"
#include "common/map.hip"

struct Gelu {
  GRETA_DEVICE static float of(const float (&x)[1]) {
    return EXACT ? gelu_erf(x[0]) : gelu_tanh(x[0]);
  }
};

GRETA_KERNEL(THREADS) gelu_flat(const In* GRETA_READ x, Out* __restrict__ out, u64 count) {
  begin_launch();
  map<Gelu>({x}, out, count);
}
