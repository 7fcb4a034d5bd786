// A workgroup computes a BM x BN tile of C on matrix cores, its waves WM x WN parts of that, in
// products of INSTR x INSTR (matrix_waves.hip); or with INSTR=64 its warpgroups
// (matrix_warpgroups.hip). It walks K in steps of BK: both operands' parts lie in shared memory
// in their own type, in STAGES buffers. With ASYNC, copies for later steps are under way; without,
// the next step waits in registers. With SPLIT > 1 the workgroup's z picks a slice of K;
// with FOLD=1 the last slice of a tile to arrive adds them all, in the order of K whatever the order
// of arrival, with FOLD=2 the slices' workgroups are a cluster, and each adds its share of the rows
// with what the others send it;
// else the sums go to the workspace for reduce.hip. With ALIGN_A or ALIGN_B that operand is a copy
// made by align.hip. WALK and XCDS say which tile a workgroup computes (tile_order.hip).

#if !defined(BM) || !defined(BN) || !defined(BK) || !defined(WM) || !defined(WN) ||             \
    !defined(INSTR) || !defined(VA) || !defined(VB) || !defined(PAD) || !defined(STAGES) ||     \
    !defined(ASYNC) || !defined(FRAGMENTS) || !defined(SWIZZLE) || !defined(SPLIT) ||           \
    !defined(FOLD) || !defined(WALK) || !defined(XCDS)
#error "BM BN BK WM WN INSTR VA VB PAD STAGES ASYNC FRAGMENTS SWIZZLE WALK XCDS SPLIT FOLD are undefined"
#endif
#if !defined(WAVE) || !defined(SHARED_BYTES)
#error "WAVE and SHARED_BYTES must be defined"
#endif
#if !defined(A_ALONG_K) || !defined(B_ALONG_K) || !defined(ALIGN_A) || !defined(ALIGN_B)
#error "{A,B}_ALONG_K and ALIGN_{A,B} must be defined"
#endif

// With INSTR=64 a part of the tile is that of four waves.
#define THREADS (BM / WM * (BN / WN) * (INSTR == 64 ? 4 : 1) * WAVE)

#if BM % WM != 0 || BN % WN != 0 || (INSTR != 64 && WM % INSTR != 0) || PAD < 0 || PAD > 1 || \
    (INSTR != 64 && WN % INSTR != 0)
#error "INSTR divides the waves' tiles, which divide the workgroup's; PAD is 0 or 1"
#endif
#if SPLIT < 1 || SWIZZLE < 1 || XCDS < 1 || WALK < 0 || WALK > 1 || (FOLD && SPLIT == 1)
#error "SPLIT, SWIZZLE and XCDS are at least 1, WALK is 0 or 1; FOLD needs slices"
#endif
#if GROUPED && (SPLIT != 1 || ALIGN_A || ALIGN_B)
#error "groups have neither slices nor copies"
#endif

#include "common/matrix.hip"
#include "gemm/aligned.hip"
#include "gemm/groups.hip"
#include "gemm/operands.hip"
#include "gemm/tile_order.hip"
#if INSTR == 64
#include "gemm/matrix_warpgroups.hip"
#else
#include "gemm/matrix_waves.hip"
#endif

// Where the threads that hold sums meet: all of them.
GRETA_DEVICE void team_barrier() { block_barrier(); }
#include "gemm/matrix_sums.hip"

#if FOLD == 2
#define MATRIX_KERNEL GRETA_CLUSTER_KERNEL(THREADS, SPLIT)
#else
#define MATRIX_KERNEL GRETA_KERNEL(THREADS)
#endif

static_assert(WAVE == wave_size, "WAVE is the size of a wave");

// Of shared memory: an inbox, then the tiles, and when they are done, sums in their place.
GRETA_DEVICE constexpr u32 shared_bytes() {
  const u32 tiles = STAGES * stage_bytes;
  return inbox_bytes + (tiles > sums_bytes() ? tiles : sums_bytes());
}

MATRIX_KERNEL GEMM_ENTRY(matrix)(GEMM_PARAMETERS) {
  begin_launch();
  MATRIX_SHARED(u8, shared);
  static_assert(shared_bytes() == SHARED_BYTES, "as MatrixKernel::shared_bytes() has it");
  const Arguments all = GEMM_ARGUMENTS;
  if (block_index<THREADS>() >= tiles_m * tiles_n) return;
#if FOLD == 2
  const Inbox inbox{reinterpret_cast<u64*>(shared)};
  inbox.open(received_by(block_z()));
  if (inbox_apart) inbox.let_others_send();
#endif
  Position tile = pick_tile<WALK == 1, XCDS>(all);
  Group group = find_group<BM>(all, tile.row / BM);
  if (GROUPED) group = same_in_wave(group);
  if (GROUPED && group.row >= group.rows) return;
  const Arguments args = of_group(all, group);
  tile.row = group.row;
  const u32 k_begin = smaller(block_z() * slice, k);
  const u32 k_end = smaller(k_begin + slice, k);
  Pipeline pipeline;
  pipeline.shared = shared_memory(shared + inbox_bytes);
  const u32 a_lines = ALIGN_A ? aligned_stride(A_ALONG_K ? k : args.m) : stride_a(args);
  const u32 b_lines = ALIGN_B ? aligned_stride(B_ALONG_K ? k : n) : stride_b(args);
  pipeline.a.start(args.a, tile.row, args.m, a_lines, k_begin);
#if DIRECT
  pipeline.direct.start(args.b, tile.col, wave_position().col, product_cols(args), b_lines, k_begin,
                        k_end - k_begin, pair_distance(args));
#else
  pipeline.b.start(args.b, tile.col, product_cols(args), b_lines, k_begin, pair_distance(args));
#endif
  Sums sums = {};
  pipeline.walk(k_end - k_begin, sums);
  put_tile(args, shared, tile, sums);
}
