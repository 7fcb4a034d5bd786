// Neighbours of a vector, as f32.
#pragma once

#include "common/types.hip"

// `count` of them, 16 bytes at a time.
template <int count, typename T>
GRETA_DEVICE void load_neighbours(const T* first, float (&x)[count]) {
  constexpr int step = int(smaller(count, 16 / sizeof(T)));
  GRETA_UNROLL
  for (int i = 0; i < count; i += step) {
    const Pack<T, step> pack = load_pack<step>(first + i);
    GRETA_UNROLL
    for (int j = 0; j < step; ++j) x[i + j] = element(pack, j);
  }
}
