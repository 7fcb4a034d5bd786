// One thread per element of C, no reuse: what the other kernels are compared with, and the best of
// them where C or K is so small that tiles would be mostly idle.

#if !defined(THREADS) || !defined(A_ALONG_K) || !defined(B_ALONG_K)
#error "THREADS, A_ALONG_K and B_ALONG_K must be defined"
#endif

#include "gemm/groups.hip"
#include "gemm/operands.hip"

#define SQUARES 64  // that are added before they are added to others

GRETA_KERNEL(THREADS) GEMM_ENTRY(naive)(GEMM_PARAMETERS) {
  begin_launch();
  const Arguments all = GEMM_ARGUMENTS;
  const u64 id = u64(block_index<THREADS>()) * THREADS + thread_index();
  if (id >= u64(tiles_m) * n) return;
  const Group group = find_group<1>(all, u32(id / n));
  if (GROUPED && group.row >= group.rows) return;
  const Arguments args = of_group(all, group);
  const u32 row = group.row, col = u32(id % n);
  const In* a_next = args.a + u64(row) * (A_ALONG_K ? stride_a(args) : 1);
  const In* const b_first = args.b + b_line(args, col);
  const In* b_next = b_first;
  const u64 a_step = A_ALONG_K ? 1 : stride_a(args), b_step = B_ALONG_K ? 1 : stride_b(args);
  float sum = 0.0f;
#if GATED
  float up = 0.0f;
#endif
#if NORM
  float squares = 0.0f, some = 0.0f;
#endif
  for (u32 i = 0; i < k; ++i, a_next += a_step, b_next += b_step) {
    if (B_PANELS) b_next = b_first + b_along(args, i);
    float x = to_float(*a_next);
#if NORM
    some = multiply_add(x, x, some);
    if (i % SQUARES == SQUARES - 1 || i == k - 1) {
      squares += some;
      some = 0.0f;
    }
    x *= to_float(weight[i]);
#endif
    sum = multiply_add(x, to_float(*b_next), sum);
#if GATED
    up = multiply_add(x, to_float(b_next[u64(n) * (B_ALONG_K ? stride_b(args) : 1)]), up);
#endif
  }
#if NORM
  const float factor = norm_factor(args, squares);
#else
  constexpr float factor = 1.0f;
#endif
#if GATED
  put(args, row, col, sum * factor, up * factor);
#else
  put(args, row, col, sum * factor);
#endif
}
