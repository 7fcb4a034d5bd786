// y[i] = x[i] / 2 + x[i - 1], with a limit that is wrong by one, for tests of the search for a change of the source.

extern "C" __global__ void smooth(const float* x, float* y, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) y[i] = 0.5f * x[i] + (i > 1 ? x[i - 1] : 0.0f);
}

extern "C" __global__ void smooth_naive(const float* x, float* y, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) y[i] = 0.5f * x[i] + (i > 0 ? x[i - 1] : 0.0f);
}
