#version 460
// A workgroup computes a BM x BN tile of C. It walks K in steps of BK: both operands' parts go
// through shared memory, and each thread keeps TM x TN sums in registers. With SPLIT > 1 the
// workgroup's z picks a slice of K, and the sums go to the workspace for reduce.comp.

#if !defined(BM) || !defined(BN) || !defined(BK) || !defined(TM) || !defined(TN) || \
    !defined(VA) || !defined(VB) || !defined(PAD) || !defined(STAGES) || !defined(UNROLL) || \
    !defined(LX) || !defined(SWIZZLE) || !defined(SPLIT)
#error "BM BN BK TM TN VA VB PAD STAGES UNROLL LX SWIZZLE and SPLIT must be defined"
#endif
#if !defined(A_ALONG_K) || !defined(B_ALONG_K) || !defined(A_PACK) || !defined(A_RAW) || \
    !defined(B_PACK) || !defined(B_RAW)
#error "A_ALONG_K A_PACK A_RAW B_ALONG_K B_PACK and B_RAW must be defined"
#endif

#include "common/in_out.glsl"
#include "gemm/operands.glsl"
#include "gemm/groups.glsl"
#include "gemm/tile_order.glsl"

#define TX (BN / TN)  // threads along n
#define TY (BM / TM)  // threads along m
#define THREADS (TX * TY)
#define LY (32 / LX)
#define LDA4 ((BM + PAD) / 4)
#define LDB4 ((BN + PAD) / 4)

#if TM % 4 != 0 || TN % 4 != 0 || BM % TM != 0 || BN % TN != 0 || PAD % 4 != 0
#error "threads' tiles are made of 4-wide pieces and divide the workgroup's tile"
#endif
#if TX % LX != 0 || TY % LY != 0
#error "bundles of LX x 32/LX threads must divide the workgroup"
#endif
#if BM * BK < VA * THREADS || BN * BK < VB * THREADS
#error "every thread must load at least one vector"
#endif
#if GROUPED && SPLIT != 1
#error "groups have no slices"
#endif
#if GATED && !B_ALONG_K
#error "gates and ups are lines of B"
#endif
#if BK % UNROLL != 0 || STAGES < 1 || STAGES > 2 || SPLIT < 1 || SWIZZLE < 1
#error "UNROLL divides BK; STAGES is 1 or 2; SPLIT and SWIZZLE are at least 1"
#endif

layout(local_size_x = THREADS) in;

// K is the slow dimension of both, so that a thread's pieces are single 16-byte reads.
shared vec4 a_tile[STAGES * BK * LDA4];
shared vec4 b_tile[STAGES * BK * LDB4];

vec4 acc[TM * TN / 4];
uint tid;
uint64_t a_next, b_next;  // this thread's first vector of the K step to load next

#define LOAD load_a
#define STORE store_a
#define RAW a_raw
#define RAW_TYPE A_RAW
#define PACK A_PACK
#define VEC VA
#define TILE a_tile
#define LD4 LDA4
#define BASE a_next
#define SPAN BM
#define FIRST row0
#define EXTENT ROWS_M
#define ALONG_K A_ALONG_K
#define STRIDE A_LINES
#define PAIRS 0
#include "gemm/tile_loader.glsl"

#define LOAD load_b
#define STORE store_b
#define RAW b_raw
#define RAW_TYPE B_RAW
#define PACK B_PACK
#define VEC VB
#define TILE b_tile
#define LD4 LDB4
#define BASE b_next
#define SPAN BN
#define FIRST col0
#define EXTENT product_cols()
#define ALONG_K B_ALONG_K
#define STRIDE B_LINES
#define PAIRS GATED
#define OF_PANELS B_PANELS
#include "gemm/tile_loader.glsl"

// Address of an operand's vector number `tid` of the K step at k0.
uint64_t first_vector(uint64_t base, bool along_k, bool pairs, uint span, uint vec, uint first,
                      uint stride, uint k0) {
  const uint groups = (along_k ? BK : span) / vec;
  const uint line = tid / groups, offset = tid % groups * vec;
  const uint64_t at = along_k ? line_place(pairs, first + line, stride) + k0 + offset
                              : uint64_t(k0 + line) * stride + first + offset;
  return base + at * IN_BYTES;
}

void load(uint k0, uint k_end) {
  const bool whole = row0 + BM <= ROWS_M && col0 + BN <= product_cols() && k0 + BK <= k_end;
  if (whole) {
    load_a(k0, k_end, true);
    load_b(k0, k_end, true);
  } else {
    load_a(k0, k_end, false);
    load_b(k0, k_end, false);
  }
  a_next += uint64_t(BK) * (A_ALONG_K != 0 ? 1 : A_LINES) * IN_BYTES;
  b_next += b_along(BK) * IN_BYTES;
}

void store(uint stage) {
  store_a(stage);
  store_b(stage);
}

void multiply(uint stage, uint tx, uint ty) {
  [[dont_unroll]] for (uint k = 0; k < BK; k += UNROLL) {
    [[unroll]] for (uint u = 0; u < UNROLL; ++u) {
      vec4 a[TM / 4], b[TN / 4];
      [[unroll]] for (uint i = 0; i < TM / 4; ++i)
        a[i] = a_tile[(stage * BK + k + u) * LDA4 + i * TY + ty];
      [[unroll]] for (uint j = 0; j < TN / 4; ++j)
        b[j] = b_tile[(stage * BK + k + u) * LDB4 + j * TX + tx];
      [[unroll]] for (uint i = 0; i < TM; ++i) {
        [[unroll]] for (uint j = 0; j < TN / 4; ++j)
          acc[i * (TN / 4) + j] = fma(vec4(a[i / 4][i % 4]), b[j], acc[i * (TN / 4) + j]);
      }
    }
  }
}

void main() {
  if (workgroup() >= args.tiles_m * args.tiles_n) return;
  tid = gl_LocalInvocationIndex;
  pick_tile();
  if (!enter_group(BM, row0)) return;
  const uint k_begin = min(gl_WorkGroupID.z * args.slice, args.k);
  const uint k_end = min(k_begin + args.slice, args.k);
  a_next = first_vector(MATRIX_A, A_ALONG_K != 0, false, BM, VA, row0, A_LINES, k_begin);
#if B_PANELS
  b_next = MATRIX_B + b_along(k_begin) * IN_BYTES;
#else
  b_next = first_vector(MATRIX_B, B_ALONG_K != 0, GATED != 0, BN, VB, col0, B_LINES,
                        k_begin);
#endif
  // Bundles of 32 threads cover LX x LY pieces: neighbours read the same or adjacent 16 bytes.
  const uint bundle = tid / 32, lane = tid % 32;
  const uint tx = bundle % (TX / LX) * LX + lane % LX;
  const uint ty = bundle / (TX / LX) * LY + lane / LX;
  [[unroll]] for (uint i = 0; i < TM * TN / 4; ++i) acc[i] = vec4(0.0);

#if STAGES == 1
  for (uint k = k_begin; k < k_end; k += BK) {
    load(k, k_end);
    barrier();
    store(0);
    barrier();
    multiply(0, tx, ty);
  }
#else
  load(k_begin, k_end);
  store(0);
  barrier();
  uint stage = 0;
  for (uint k = k_begin; k < k_end; k += BK) {
    // The next step's loads are in flight while this one is multiplied.
    const bool more = k + BK < k_end;
    if (more) load(k + BK, k_end);
    multiply(stage, tx, ty);
    stage = 1 - stage;
    if (more) store(stage);
    barrier();
  }
#endif

  [[unroll]] for (uint e = 0; e < TM * TN / 4; ++e) {
    const uint i = e / (TN / 4), j = e % (TN / 4);
    const uint row = row0 + (i / 4 * TY + ty) * 4 + i % 4;
    const uint col = col0 + (j * TX + tx) * 4;
#if SPLIT > 1
    if (row < ROWS_M) put_partial4(gl_WorkGroupID.z, row, col, acc[e]);
#else
    if (row < ROWS_M) put4(row, col, acc[e]);
#endif
  }
}
