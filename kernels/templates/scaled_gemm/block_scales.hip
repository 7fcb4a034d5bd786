// Scales of blocks as a vendor's library reads them: those of A by columns, and lines of those of B of whole fours.
// A workgroup has TILE x TILE scales of A, which it transposes in shared memory, or after these a line of B's.
#if !defined(THREADS) || !defined(TILE) || THREADS % TILE != 0
#error "TILE must be defined, and divide THREADS"
#endif

#include "common/device.hip"

constexpr u32 padded = TILE + 1;  // so that columns lie in different banks

GRETA_KERNEL(THREADS)
scaled_gemm_block_scales(const float* GRETA_READ scales_a, const float* GRETA_READ scales_b,
                         float* __restrict__ by_columns, float* __restrict__ in_fours, u32 rows,
                         u32 blocks, u32 tiles) {
  begin_launch();
  GRETA_SHARED(float, tile, TILE * padded);
  const u32 group = block_index<THREADS>(), lane = thread_index() % TILE;
  if (group >= tiles) {
    const u32 line = group - tiles, width = (blocks + 3) / 4 * 4;
    for (u32 i = thread_index(); i < width; i += THREADS) {
      in_fours[u64(line) * width + i] = i < blocks ? scales_b[u64(line) * blocks + i] : 0.0f;
    }
    return;
  }
  const u32 across = (blocks - 1) / TILE + 1;
  const u32 first_row = group / across * TILE, first_block = group % across * TILE;
  for (u32 i = thread_index() / TILE; i < TILE; i += THREADS / TILE) {
    const u32 row = first_row + i, block = first_block + lane;
    if (row < rows && block < blocks) tile[i * padded + lane] = scales_a[u64(row) * blocks + block];
  }
  block_barrier();
  for (u32 i = thread_index() / TILE; i < TILE; i += THREADS / TILE) {
    const u32 row = first_row + lane, block = first_block + i;
    if (row < rows && block < blocks) by_columns[u64(block) * rows + row] = tile[lane * padded + i];
  }
}
