// How a workgroup that multiplies tiles on matrix cores uses shared memory. Its subgroups compute WM x WN
// parts of a BM x BN tile of C in products of INSTR_M x INSTR_N x INSTR_K. It walks K in steps of BK:
// both operands' parts lie in shared memory in A's type, in STAGES buffers. With PARTS > 1 the
// operand B is the sum of as many tiles. To be included before everything else.

#if !defined(BM) || !defined(BN) || !defined(BK) || !defined(WM) || !defined(WN) || \
    !defined(PAD) || !defined(STAGES) || !defined(SUBGROUP)
#error "BM BN BK WM WN PAD STAGES and SUBGROUP must be defined"
#endif
#if !defined(A_ALONG_K) || !defined(B_ALONG_K)
#error "{A,B}_ALONG_K must be defined"
#endif
#if !defined(PARTS)
#define PARTS 1
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
#define STAGE_CHUNKS (A_CHUNKS + PARTS * B_CHUNKS)

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

#if BM % WM != 0 || BN % WN != 0 || WM % INSTR_M != 0 || PIECE % INSTR_N != 0 || BK % INSTR_K != 0
#error "products divide the subgroups' tiles and BK, subgroups' tiles divide the workgroup's"
#endif
#if BM * BK % (8 * THREADS) != 0 || BN * BK % (8 * THREADS) != 0
#error "every thread must load the same number of chunks"
#endif
#if INSTR_M * PIECE % (4 * SUBGROUP) != 0 || INSTR_N % 4 != 0 || BK % 8 != 0
#error "every lane must write the same number of fours"
#endif
#if STAGES < 1 || STAGES > 2 || PARTS < 1
#error "STAGES is 1 or 2, PARTS at least 1"
#endif

layout(local_size_x = THREADS) in;

uint tid;
