// Copies f32 operands that lie along k into the workspace, where k numbers their lines: those of A and
// B that do so, A first. A copy's lines start at multiples of 16 bytes; what they hold behind their end
// is 0. A workgroup copies a square through shared memory; its z picks the operand where it is both.

#if !defined(A_ALONG_K) || !defined(B_ALONG_K) || !(A_ALONG_K || B_ALONG_K)
#error "A_ALONG_K or B_ALONG_K must be 1"
#endif

#include "gemm/aligned.hip"
#include "gemm/operands.hip"

#define THREADS 256
#define SIDE 32

GRETA_KERNEL(THREADS) gemm_transpose(GEMM_PARAMETERS) {
  begin_launch();
  GRETA_SHARED(float, square, SIDE * (SIDE + 1));
  const bool second = B_ALONG_K && (!A_ALONG_K || block_z() == 1);
  const Arguments args = GEMM_ARGUMENTS;
  const u32 lines = second ? n : m, stride = second ? stride_b(args) : stride_a(args);
  const In* const from = second ? b : a;
  u8* start = reinterpret_cast<u8*>(partial);
  if (second && A_ALONG_K) start += aligned_bytes(k, m);
  float* const to = reinterpret_cast<float*>(start);

  const u32 across = (k + SIDE - 1) / SIDE, index = block_index<THREADS>();
  const u32 line = index / across * SIDE, first = index % across * SIDE;
  if (line >= lines) return;
  const u32 x = thread_index() % SIDE, y = thread_index() / SIDE;
  GRETA_UNROLL
  for (u32 i = y; i < SIDE; i += THREADS / SIDE) {
    const bool inside = line + i < lines && first + x < k;
    square[i * (SIDE + 1) + x] = inside ? to_float(from[u64(line + i) * stride + first + x]) : 0.0f;
  }
  block_barrier();
  const u32 width = aligned_stride(lines);
  GRETA_UNROLL
  for (u32 i = y; i < SIDE; i += THREADS / SIDE) {
    if (first + i < k && line + x < width) {
      to[u64(first + i) * width + line + x] = square[x * (SIDE + 1) + i];
    }
  }
}
