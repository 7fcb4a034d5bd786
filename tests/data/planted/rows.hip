// The softmax of each row, by one workgroup for each.

#define THREADS 64

extern "C" __global__ void rows(const float* x, float* y, int cols) {
  __shared__ float parts[THREADS];
  const int me = threadIdx.x;
  const float* line = x + blockIdx.x * cols;
  float most = -1e30f;
  for (int i = me; i < cols; i += THREADS) most = fmaxf(most, line[i]);
  parts[me] = most;
  __syncthreads();
  for (int step = THREADS / 2; step > 0; step /= 2) {
    if (me < step) parts[me] = fmaxf(parts[me], parts[me + step]);
    __syncthreads();
  }
  most = parts[0];
  __syncthreads();
  float sum = 0;
  for (int i = me; i < cols; i += THREADS) sum += expf(line[i] - most);
  parts[me] = sum;
  __syncthreads();
  for (int step = THREADS / 2; step > 0; step /= 2) {
    if (me < step) parts[me] += parts[me + step];
    __syncthreads();
  }
  const float factor = 1 / parts[0];
  for (int i = me; i < cols; i += THREADS) y[blockIdx.x * cols + i] = expf(line[i] - most) * factor;
}

extern "C" __global__ void rows_naive(const float* x, float* y, int cols) {
  const float* line = x + blockIdx.x * cols;
  double most = -1e30f, sum = 0;
  for (int i = 0; i < cols; ++i) most = fmax(most, static_cast<double>(line[i]));
  for (int i = 0; i < cols; ++i) sum += exp(static_cast<double>(line[i]) - most);
  for (int i = 0; i < cols; ++i)
    y[blockIdx.x * cols + i] = static_cast<float>(exp(static_cast<double>(line[i]) - most) / sum);
}
