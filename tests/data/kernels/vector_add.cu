// c = a + b, of n elements.

extern "C" __global__ void vector_add(const float* a, const float* b, float* c, int n) {
  const int first = MODE_IS_blocked ? (blockIdx.x * BLOCK + threadIdx.x) * ITEMS
                                    : blockIdx.x * BLOCK * ITEMS + threadIdx.x;
  const int step = MODE_IS_blocked ? 1 : BLOCK;
#if UNROLL
#pragma unroll
#endif
  for (int i = 0; i < ITEMS; ++i) {
    const int at = first + i * step;
    if (at < n) c[at] = a[at] + b[at];
  }
}

extern "C" __global__ void vector_add_naive(const float* a, const float* b, float* c, int n) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < n) c[at] = a[at] + b[at];
}
