#version 460
// A workgroup computes a BM x BN tile of C on matrix cores (matrix_memory.glsl). It walks K in steps of
// BK: both operands' parts lie in shared memory, and the next step waits in registers. With
// SPLIT > 1 the workgroup's z picks a slice of K, and the sums go to the workspace for reduce.comp.
// With ALIGN_A or ALIGN_B that operand is a copy made by align.comp.

#if !defined(VA) || !defined(VB) || !defined(SWIZZLE) || !defined(SPLIT)
#error "VA VB SWIZZLE and SPLIT must be defined"
#endif
#if !defined(ALIGN_A) || !defined(ALIGN_B)
#error "ALIGN_{A,B} must be defined"
#endif

#include "gemm/matrix_memory.glsl"
#include "common/in_out.glsl"
#include "gemm/operands.glsl"
#include "gemm/groups.glsl"
#include "gemm/aligned.glsl"
#include "gemm/tile_order.glsl"

#if GROUPED && (SPLIT != 1 || ALIGN_A || ALIGN_B)
#error "groups have neither slices nor copies"
#endif
#if GATED && (!B_ALONG_K || ALIGN_B)
#error "gates and ups are lines of B, and are not copied"
#endif
#if SPLIT < 1 || SWIZZLE < 1
#error "SPLIT and SWIZZLE are at least 1"
#endif

uint64_t a_next, b_next;  // this thread's first chunk of the K step to load next

#define A_STRIDE (ALIGN_A != 0 ? aligned_stride(A_ALONG_K != 0 ? args.k : args.m) : A_LINES)
#define B_STRIDE (ALIGN_B != 0 ? aligned_stride(B_ALONG_K != 0 ? args.k : args.n) : B_LINES)

#define LOAD load_a
#define STORE store_a
#define FIRST_CHUNK first_a
#define CHUNK a_chunk
#define VEC VA
#define BASE a_next
#define PLACE 0
#define PITCH A_PITCH
#define SPAN BM
#define START row0
#define EXTENT ROWS_M
#define ALONG_K A_ALONG_K
#define STRIDE A_STRIDE
#define PAIRS 0
#include "gemm/matrix_loader.glsl"

#define LOAD load_b
#define STORE store_b
#define FIRST_CHUNK first_b
#define CHUNK b_chunk
#define VEC VB
#define BASE b_next
#define PLACE A_CHUNKS
#define PITCH B_PITCH
#define SPAN BN
#define START col0
#define EXTENT product_cols()
#define ALONG_K B_ALONG_K
#define STRIDE B_STRIDE
#define PAIRS GATED
#define OF_PANELS B_PANELS
#include "gemm/matrix_loader.glsl"

void load(uint k0, uint k_end) {
  load_a(k0, k_end);
  load_b(k0, k_end);
  a_next += uint64_t(BK) * (A_ALONG_K != 0 ? 1 : A_STRIDE) * 2;
#if B_PANELS
  b_next += b_along(BK) * 2;
#else
  b_next += uint64_t(BK) * (B_ALONG_K != 0 ? 1 : B_STRIDE) * 2;
#endif
}

void store(uint stage) {
  store_a(stage);
  store_b(stage);
}

void put_four(uint row, uint col, vec4 sum) {
#if SPLIT > 1
  if (row < ROWS_M) put_partial4(gl_WorkGroupID.z, row, col, sum);
#else
  if (row < ROWS_M) put4(row, col, sum);
#endif
}

#include "gemm/matrix_products.glsl"

void main() {
  if (workgroup() >= args.tiles_m * args.tiles_n) return;
  tid = gl_LocalInvocationIndex;
  pick_tile();
  if (!enter_group(BM, row0)) return;
  const uint k_begin = min(gl_WorkGroupID.z * args.slice, args.k);
  const uint k_end = min(k_begin + args.slice, args.k);
  a_next = first_a(MATRIX_A, k_begin);
  b_next = first_b(MATRIX_B, k_begin);
  multiply_steps(k_begin, k_end);
  put_sums();
}
