// C = A B with tiles of A and B in shared memory, and the faults that docs/diagnose.md names. FAULT
// selects one; without it, the kernel is right.

#define TILE 8

struct __attribute__((packed, aligned(1))) Unaligned {
  float value;
};

extern "C" __global__ void product(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE];
  const int x = threadIdx.x % TILE, y = threadIdx.x / TILE;
  const int row = blockIdx.y * TILE + y, col = blockIdx.x * TILE + x;
#if FAULT_IS_uninitialised_read
  float sum = row < m && col < n ? c[row * n + col] : 0;
#else
  float sum = 0;
#endif
  int end = k;
#if FAULT_IS_missing_tail
  end = k / TILE * TILE;
#elif FAULT_IS_off_by_one
  end = k - 1;
#endif
  int first = 0;
#if FAULT_IS_missing_slice
  first = TILE;
#endif
  int a_stride = k;
#if FAULT_IS_wrong_stride
  a_stride = (k + 3) / 4 * 4;
#endif
  for (int k0 = first; k0 < end; k0 += TILE) {
    int a_row = row;
#if FAULT_IS_shifted_row
    a_row = row + 1 < m ? row + 1 : row;
#endif
    const int ak = k0 + x, bk = k0 + y;
#if FAULT_IS_transposed_operand
    a_tile[y][x] = a_row < m && ak < end ? a[ak * m + a_row] : 0;
#elif FAULT_IS_wrong_stride
    a_tile[y][x] = a_row < m && ak < end && a_row * a_stride + ak < m * k ? a[a_row * a_stride + ak] : 0;
#else
#if FAULT_IS_tile_step
    const int step = 2 * TILE;  // between tiles, in place of TILE
#else
    const int step = TILE;
#endif
    const int at = a_row * a_stride + k0 / TILE * step + x;
    a_tile[y][x] = a_row < m && ak < end && at < m * k ? a[at] : 0;
#endif
#if FAULT_IS_element_size
    const char* const bytes = reinterpret_cast<const char*>(b) + 2 * (bk * n + col);
    b_tile[y][x] = bk < end && col < n ? reinterpret_cast<const Unaligned*>(bytes)->value : 0.0f;
#elif FAULT_IS_exchanged_rows
    b_tile[y][x] = bk < end && col < n ? b[(bk / 5 * 5 + (bk + 4) % 5) * n + col] : 0;
#elif FAULT_IS_stale_operand
    if (k0 + TILE < end) b_tile[y][x] = bk < end && col < n ? b[bk * n + col] : 0;
#elif FAULT_IS_neighbour
    b_tile[y][x] = bk < end && col < n ? b[bk * n + col / 2 * 2] : 0;
#else
    b_tile[y][x] = bk < end && col < n ? b[bk * n + col] : 0;
#endif
#if !FAULT_IS_missing_barrier
    __syncthreads();
#endif
    for (int i = 0; i < TILE; ++i) sum += a_tile[y][i] * b_tile[i][x];
#if FAULT_IS_doubled_slice
    if (k0 == TILE)
      for (int i = 0; i < TILE; ++i) sum += a_tile[y][i] * b_tile[i][x];
#endif
#if FAULT_IS_half_sums
    sum = static_cast<float>(static_cast<_Float16>(sum));
#endif
    __syncthreads();
  }
#if FAULT_IS_write_outside
  if (row == m && col < n) c[row * n + col] = sum;  // the row after the last one
#endif
  if (row >= m || col >= n) return;
#if FAULT_IS_unwritten
  if (blockIdx.y == gridDim.y - 1) return;
#elif FAULT_IS_stale_tile
  // The last column of tiles gets what the one before it computes.
  if (blockIdx.x == gridDim.x - 1) return;
  if (blockIdx.x == gridDim.x - 2 && col + TILE < n) c[row * n + col + TILE] = sum;
#elif FAULT_IS_wrong_sign
  sum = -sum;
#endif
  c[row * n + col] = sum;
}

extern "C" __global__ void product_naive(const float* a, const float* b, float* c, int m, int n,
                                         int k) {
  const int at = blockIdx.x * 256 + threadIdx.x;
  if (at >= m * n) return;
  double sum = 0;
  for (int i = 0; i < k; ++i) {
    sum += static_cast<double>(a[at / n * k + i]) * static_cast<double>(b[i * n + at % n]);
  }
  c[at] = static_cast<float>(sum);
}
