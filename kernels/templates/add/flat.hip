// C = A + B.
#include "common/map.hip"

struct Sum {
  GRETA_DEVICE static float of(const float (&x)[2]) { return x[0] + x[1]; }
};

GRETA_KERNEL(THREADS)
add_flat(const In* GRETA_READ a, const In* GRETA_READ b, Out* __restrict__ c, u64 count) {
  begin_launch();
  map<Sum>({a, b}, c, count);
}
