#pragma once

template <typename T>
__device__ T stored(double value) {
  return static_cast<T>(value);
}
