// C = A B for each of several matrices, with tiles in shared memory.

#define TILE 16

extern "C" __global__ void batched(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE];
  const int x = threadIdx.x % TILE, y = threadIdx.x / TILE;
  const int row = blockIdx.y * TILE + y, col = blockIdx.x * TILE + x, batch = blockIdx.z;
  const float* a_of_batch = a + batch * m * k;
  const float* b_of_batch = b + batch * k * n;
  float sum = 0;
  for (int k0 = 0; k0 < k; k0 += TILE) {
    a_tile[y][x] = row < m && k0 + x < k ? a_of_batch[row * k + k0 + x] : 0;
    b_tile[y][x] = k0 + y < k && col < n ? b_of_batch[(k0 + y) * n + col] : 0;
    __syncthreads();
    for (int i = 0; i < TILE; ++i) sum += a_tile[y][i] * b_tile[i][x];
    __syncthreads();
  }
  if (row < m && col < n) c[(batch * m + row) * n + col] = sum;
}

extern "C" __global__ void batched_naive(const float* a, const float* b, float* c, int m, int n, int k) {
  const int row = blockIdx.x, col = threadIdx.x, batch = row / m;
  double sum = 0;
  for (int i = 0; i < k; ++i)
    sum += static_cast<double>(a[row * k + i]) * static_cast<double>(b[(batch * k + i) * n + col]);
  c[row * n + col] = static_cast<float>(sum);
}
