// Each thread adds a row of bf16, the upper halves of float.

extern "C" __global__ void row_sums(const unsigned short* x, float* sums, int rows, int cols,
                                    int factor) {
  const int row = blockIdx.x * BLOCK + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
#pragma unroll UNROLL
  for (int col = 0; col < cols; ++col) {
    sum += __uint_as_float(static_cast<unsigned>(x[row * cols + col]) << 16);
  }
  sums[row] = sum * factor;
}
