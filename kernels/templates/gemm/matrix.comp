#version 460
// A workgroup computes a BM x BN tile of C on matrix cores, its subgroups WM x WN parts of that, in
// products of INSTR_M x INSTR_N x INSTR_K. It walks K in steps of BK: both operands' parts lie in
// shared memory in their own type, in STAGES buffers, and the next step waits in registers. With
// SPLIT > 1 the workgroup's z picks a slice of K, and the sums go to the workspace for reduce.comp.
// With ALIGN_A or ALIGN_B that operand is a copy made by align.comp.

#if !defined(BM) || !defined(BN) || !defined(BK) || !defined(WM) || !defined(WN) || \
    !defined(VA) || !defined(VB) || !defined(PAD) || !defined(STAGES) || !defined(SWIZZLE) || \
    !defined(SPLIT) || !defined(SUBGROUP)
#error "BM BN BK WM WN VA VB PAD STAGES SWIZZLE SPLIT and SUBGROUP must be defined"
#endif
#if !defined(A_ALONG_K) || !defined(B_ALONG_K) || !defined(ALIGN_A) || !defined(ALIGN_B)
#error "{A,B}_ALONG_K and ALIGN_{A,B} must be defined"
#endif

#define SUBGROUPS (BM / WM * (BN / WN))
#define THREADS (SUBGROUPS * SUBGROUP)

// Lines of the tiles in shared memory, in chunks of 16 bytes.
#if A_ALONG_K
#define A_PITCH (BK / 8 + PAD)
#define A_CHUNKS (BM * A_PITCH)
#else
#define A_PITCH (BM / 8 + PAD)
#define A_CHUNKS (BK * A_PITCH)
#endif
#if B_ALONG_K
#define B_PITCH (BK / 8 + PAD)
#define B_CHUNKS (BN * B_PITCH)
#else
#define B_PITCH (BN / 8 + PAD)
#define B_CHUNKS (BK * B_PITCH)
#endif
#define STAGE_CHUNKS (A_CHUNKS + B_CHUNKS)

// The sums leave through the same memory: each subgroup has room for INSTR_M rows of a piece.
#if WN < 64
#define PIECE WN
#else
#define PIECE 64
#endif
#define PIECE_PITCH (PIECE / 4 + 1)
#define PIECE_CHUNKS (INSTR_M * PIECE_PITCH)

#if STAGES * STAGE_CHUNKS > SUBGROUPS * PIECE_CHUNKS
#define MATRIX_CHUNKS (STAGES * STAGE_CHUNKS)
#else
#define MATRIX_CHUNKS (SUBGROUPS * PIECE_CHUNKS)
#endif

#include "common/cooperative_matrix.glsl"
#include "common/in_out.glsl"
#include "gemm/operands.glsl"
#include "gemm/groups.glsl"
#include "gemm/aligned.glsl"
#include "gemm/tile_order.glsl"

#if BM % WM != 0 || BN % WN != 0 || WM % INSTR_M != 0 || PIECE % INSTR_N != 0 || BK % INSTR_K != 0
#error "products divide the subgroups' tiles and BK, subgroups' tiles divide the workgroup's"
#endif
#if BM * BK % (8 * THREADS) != 0 || BN * BK % (8 * THREADS) != 0
#error "every thread must load the same number of chunks"
#endif
#if INSTR_M * PIECE % (4 * SUBGROUP) != 0 || INSTR_N % 4 != 0 || BK % 8 != 0
#error "every lane must write the same number of fours"
#endif
#if GROUPED && (SPLIT != 1 || ALIGN_A || ALIGN_B)
#error "groups have neither slices nor copies"
#endif
#if GATED && (!B_ALONG_K || ALIGN_B)
#error "gates and ups are lines of B, and are not copied"
#endif
#if STAGES < 1 || STAGES > 2 || SPLIT < 1 || SWIZZLE < 1
#error "STAGES is 1 or 2; SPLIT and SWIZZLE are at least 1"
#endif

layout(local_size_x = THREADS) in;

MatrixC sums[(WM / INSTR_M) * (WN / INSTR_N)];
uint tid;
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
#include "gemm/matrix_loader.glsl"

void load(uint k0, uint k_end) {
  load_a(k0, k_end);
  load_b(k0, k_end);
  a_next += uint64_t(BK) * (A_ALONG_K != 0 ? 1 : A_STRIDE) * 2;
  b_next += uint64_t(BK) * (B_ALONG_K != 0 ? 1 : B_STRIDE) * 2;
}

// Where the subgroup's part of the tile starts.
uint part_row() { return gl_SubgroupID / (BN / WN) * WM; }
uint part_column() { return gl_SubgroupID % (BN / WN) * WN; }

void multiply(uint stage) {
  const uint a_place = stage * STAGE_CHUNKS, b_place = a_place + A_CHUNKS;
  [[unroll]] for (uint k = 0; k < BK; k += INSTR_K) {
    MatrixA a[WM / INSTR_M];
    [[unroll]] for (uint i = 0; i < WM / INSTR_M; ++i) {
      const uint row = part_row() + i * INSTR_M;
#if A_ALONG_K
      load_matrix(a[i], a_place + row * A_PITCH + k / 8, A_PITCH, ROW_MAJOR);
#else
      load_matrix(a[i], a_place + k * A_PITCH + row / 8, A_PITCH, COLUMN_MAJOR);
#endif
    }
    [[unroll]] for (uint j = 0; j < WN / INSTR_N; ++j) {
      const uint col = part_column() + j * INSTR_N;
      MatrixB b;
#if B_ALONG_K
      load_matrix(b, b_place + col * B_PITCH + k / 8, B_PITCH, COLUMN_MAJOR);
#else
      load_matrix(b, b_place + k * B_PITCH + col / 8, B_PITCH, ROW_MAJOR);
#endif
      [[unroll]] for (uint i = 0; i < WM / INSTR_M; ++i)
        sums[i * (WN / INSTR_N) + j] = multiply_add(a[i], b, sums[i * (WN / INSTR_N) + j]);
    }
  }
}

// The sums of INSTR_M rows and PIECE columns at a time, so that neighbouring lanes write
// neighbouring columns.
void put_piece(uint row, uint col, uint place) {
  [[unroll]] for (uint e = 0; e < INSTR_M * PIECE / 4; e += SUBGROUP) {
    const uint four = e + gl_SubgroupInvocationID;
    const uint r = four / (PIECE / 4), c = four % (PIECE / 4);
    const vec4 sum = uintBitsToFloat(matrix_memory[place + r * PIECE_PITCH + c]);
#if SPLIT > 1
    if (row + r < ROWS_M) put_partial4(gl_WorkGroupID.z, row + r, col + c * 4, sum);
#else
    if (row + r < ROWS_M) put4(row + r, col + c * 4, sum);
#endif
  }
}

void put_sums() {
  const uint place = gl_SubgroupID * PIECE_CHUNKS;
  [[unroll]] for (uint i = 0; i < WM / INSTR_M; ++i) {
    [[unroll]] for (uint j = 0; j < WN; j += PIECE) {
      [[unroll]] for (uint l = 0; l < PIECE; l += INSTR_N)
        store_matrix(sums[i * (WN / INSTR_N) + (j + l) / INSTR_N], place + l / 4, PIECE_PITCH);
      subgroupBarrier();
      put_piece(row0 + part_row() + i * INSTR_M, col0 + part_column() + j, place);
      subgroupBarrier();
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
  a_next = first_a(MATRIX_A, k_begin);
  b_next = first_b(MATRIX_B, k_begin);
  [[unroll]] for (uint i = 0; i < (WM / INSTR_M) * (WN / INSTR_N); ++i) sums[i] = zero_matrix();

  load(k_begin, k_end);
  uint stage = 0;
  [[dont_unroll]] for (uint k = k_begin; k < k_end; k += BK) {
#if STAGES == 1
    barrier();  // the step before was multiplied
#endif
    store_a(stage);
    store_b(stage);
    barrier();
    load(k + BK, k_end);  // in flight while this step is multiplied
    multiply(stage);
    stage = STAGES - 1 - stage;
  }
  barrier();  // shared memory is used for the sums from here on
  put_sums();
}
