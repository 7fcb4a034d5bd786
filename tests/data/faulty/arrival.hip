// y = x, and with RACE a share of it that depends on the order in which workgroups arrive. Each
// workgroup works for a while, so that they run at the same time.

extern "C" __global__ void arrival(const float* x, float* y, int* arrived, int n) {
  const int at = blockIdx.x * 64 + threadIdx.x;
  float share = 0;
  for (int i = 0; i < 2000; ++i) share = share * 0.5f + static_cast<float>(i % 7);
  share = share > 100 ? share : 0;
  const int before = atomicAdd(arrived, 1);
#if RACE
  share += static_cast<float>(before / 64) * SIZE;
#endif
  if (at < n) y[at] = x[at] + share;
}

extern "C" __global__ void arrival_naive(const float* x, float* y, int* arrived, int n) {
  const int at = blockIdx.x * 64 + threadIdx.x;
  atomicAdd(arrived, 1);
  if (at < n) y[at] = x[at];
}
