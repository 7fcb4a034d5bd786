#version 460
// One thread per element of C, no reuse: what the other kernels are compared with, and the best of
// them where C or K is so small that tiles would be mostly idle.

#if !defined(THREADS) || !defined(A_ALONG_K) || !defined(B_ALONG_K)
#error "THREADS, A_ALONG_K and B_ALONG_K must be defined"
#endif

#include "common/in_out.glsl"
#include "gemm/operands.glsl"

layout(local_size_x = THREADS) in;

void main() {
  const uint64_t id = uint64_t(workgroup()) * THREADS + gl_LocalInvocationIndex;
  if (id >= uint64_t(args.m) * args.n) return;
  const uint row = uint(id / args.n), col = uint(id % args.n);
  uint64_t a = args.a + uint64_t(row) * (A_ALONG_K != 0 ? args.k : 1) * IN_BYTES;
  uint64_t b = args.b + uint64_t(col) * (B_ALONG_K != 0 ? args.k : 1) * IN_BYTES;
  const uint64_t a_step = uint64_t(A_ALONG_K != 0 ? 1 : args.m) * IN_BYTES;
  const uint64_t b_step = uint64_t(B_ALONG_K != 0 ? 1 : args.n) * IN_BYTES;
  float sum = 0.0;
  for (uint k = 0; k < args.k; ++k) {
    sum = fma(load_in(a), load_in(b), sum);
    a += a_step;
    b += b_step;
  }
  put(row, col, sum);
}
