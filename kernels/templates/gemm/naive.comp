#version 460
// One thread per element of C, no reuse: what the other kernels are compared with, and the best of
// them where C or K is so small that tiles would be mostly idle.

#if !defined(THREADS) || !defined(A_ALONG_K) || !defined(B_ALONG_K)
#error "THREADS, A_ALONG_K and B_ALONG_K must be defined"
#endif

#include "common/in_out.glsl"
#include "gemm/operands.glsl"
#include "gemm/groups.glsl"

#define SQUARES 64  // that are added before they are added to others

layout(local_size_x = THREADS) in;

void main() {
  const uint64_t id = uint64_t(workgroup()) * THREADS + gl_LocalInvocationIndex;
  if (id >= uint64_t(args.tiles_m) * args.n) return;
  uint row = uint(id / args.n);
  const uint col = uint(id % args.n);
  if (!enter_group(1, row)) return;
  uint64_t a = MATRIX_A + uint64_t(row) * (A_ALONG_K != 0 ? A_LINES : 1) * IN_BYTES;
  const uint64_t first_b = MATRIX_B + b_line(col) * IN_BYTES;
  uint64_t b = first_b;
  const uint64_t a_step = uint64_t(A_ALONG_K != 0 ? 1 : A_LINES) * IN_BYTES;
  const uint64_t b_step = uint64_t(B_ALONG_K != 0 ? 1 : B_LINES) * IN_BYTES;
  float sum = 0.0;
#if GATED
  const uint64_t to_up = uint64_t(args.n) * (B_ALONG_K != 0 ? B_LINES : 1) * IN_BYTES;
  float up = 0.0;
#endif
#if NORM
  float squares = 0.0, some = 0.0;
#endif
  for (uint k = 0; k < args.k; ++k) {
#if B_PANELS
    b = first_b + b_along(k) * IN_BYTES;
#endif
    float x = load_in(a);
#if NORM
    some = fma(x, x, some);
    if (k % SQUARES == SQUARES - 1 || k == args.k - 1) {
      squares += some;
      some = 0.0;
    }
    x *= load_in(args.weight + uint64_t(k) * IN_BYTES);
#endif
    sum = fma(x, load_in(b), sum);
#if GATED
    up = fma(x, load_in(b + to_up), up);
#endif
    a += a_step;
    b += b_step;
  }
#if NORM
  const float factor = norm_factor(squares);
#else
  const float factor = 1.0;
#endif
#if GATED
  put(row, col, sum * factor, up * factor);
#else
  put(row, col, sum * factor);
#endif
}
