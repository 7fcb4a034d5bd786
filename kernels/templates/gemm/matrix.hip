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
#if FOLD == 1
#include "gemm/slices.hip"
#elif FOLD == 2
#include "common/cluster.hip"
#endif

static_assert(WAVE == wave_size, "WAVE is the size of a wave");

// Hands the wave's sums, four neighbours of a row at a time, to `take`. They go through shared
// memory, a piece of its rows at a time, so that neighbouring lanes get neighbouring columns.
constexpr u32 piece_columns = piece_width < 64 ? piece_width : 64;

// Hands out `width` columns of piece i, from column `first` on, which start at `at` in C.
template <u32 width, typename Take>
GRETA_DEVICE void hand_out_columns(float* piece, Position at, const Sums& sums, u32 i, u32 first,
                                   Take take) {
  constexpr u32 pitch = sums_pitch(width);
  static_assert(piece_rows * width / 4 % wave_size == 0, "lanes have equal numbers of fours");
  store_piece<width>(sums, i, first, piece, pitch);
  wave_barrier();
  GRETA_UNROLL
  for (u32 e = 0; e < piece_rows * width / 4; e += wave_size) {
    const u32 row = (e + lane_index()) / (width / 4), col = (e + lane_index()) % (width / 4) * 4;
    const Pack<float, 4> pack = load_pack<4>(piece + row * pitch + col);
    const float four[4] = {element(pack, 0), element(pack, 1), element(pack, 2), element(pack, 3)};
    take(at.row + row, at.col + first + col, four);
  }
  wave_barrier();
}

template <typename Take>
GRETA_DEVICE void hand_out(float* shared, Position tile, const Sums& sums, Take take) {
  constexpr u32 rest = piece_width % piece_columns;
  float* const piece = shared + wave_index() * (piece_rows * sums_pitch(piece_columns));
  GRETA_UNROLL
  for (u32 i = 0; i < pieces; ++i) {
    const Position start = piece_position(i), at{tile.row + start.row, tile.col + start.col};
    GRETA_UNROLL
    for (u32 j = 0; j < piece_width - rest; j += piece_columns) {
      hand_out_columns<piece_columns>(piece, at, sums, i, j, take);
    }
    if constexpr (rest > 0) hand_out_columns<rest>(piece, at, sums, i, piece_width - rest, take);
  }
}

#if FOLD == 1
// Adds the slices' sums of the whole tile. A thread has several loads in flight.
GRETA_DEVICE void add_slices(const Arguments& args, Position tile) {
  constexpr u32 all = BM * BN / 4, fours = (all + THREADS - 1) / THREADS;  // of a thread
  constexpr u32 together = SPLIT >= 16 ? 1 : fours < 16 / SPLIT ? fours : 16 / SPLIT;
  constexpr bool even = all % THREADS == 0 && fours % together == 0;
  GRETA_NO_UNROLL
  for (u32 e = 0; e < fours; e += together) {
    float part[together][SPLIT][4] = {};
    GRETA_UNROLL
    for (u32 i = 0; i < together; ++i) {
      const u32 at = (e + i) * THREADS + thread_index();
      const u32 row = tile.row + at / (BN / 4), col = tile.col + at % (BN / 4) * 4;
      GRETA_UNROLL
      for (u32 s = 0; s < SPLIT; ++s) {
        if ((even || at < all) && row < args.m) get_partial4(args, s, row, col, part[i][s]);
      }
    }
    GRETA_UNROLL
    for (u32 i = 0; i < together; ++i) {
      const u32 at = (e + i) * THREADS + thread_index();
      const u32 row = tile.row + at / (BN / 4), col = tile.col + at % (BN / 4) * 4;
      GRETA_UNROLL
      for (u32 s = 1; s < SPLIT; ++s) {
        GRETA_UNROLL
        for (u32 j = 0; j < 4; ++j) part[i][0][j] += part[i][s][j];
      }
      if ((even || at < all) && row < args.m) put4(args, row, col, part[i][0]);
    }
  }
}
#endif

#if FOLD == 2
#define MATRIX_KERNEL GRETA_CLUSTER_KERNEL(THREADS, SPLIT)

// Each block of the cluster has a slice's sums, and adds up a share of the rows: some have one row
// more than others, if SPLIT does not divide BM. Shares are places of as many rows as the largest.
constexpr u32 share = (BM + SPLIT - 1) / SPLIT, share_fours = share * (BN / 4);
GRETA_DEVICE constexpr u32 first_row(u32 rank) { return rank * BM / SPLIT; }
GRETA_DEVICE constexpr bool has_row(u32 rank, u32 row) {
  return BM % SPLIT == 0 || row < first_row(rank + 1) - first_row(rank);
}

// Other slices' sums of this block's share. Few have a place of their own, in front of the tiles, so
// that nobody waits until others are done with theirs; many take the tiles', behind the own sums.
constexpr u32 received_bytes = (SPLIT - 1) * share_fours * 16;
GRETA_DEVICE constexpr u32 received_by(u32 rank) {
  return (SPLIT - 1) * (first_row(rank + 1) - first_row(rank)) * BN * 4;
}
constexpr bool inbox_apart = received_bytes <= 16384;
constexpr u32 inbox_bytes = (16 + (inbox_apart ? received_bytes : 0) + 1023) / 1024 * 1024;

GRETA_DEVICE void add_in_cluster(const Arguments& args, u8* inbox_memory, Position tile,
                                 const Sums& sums) {
  const Inbox inbox{reinterpret_cast<u64*>(inbox_memory)};
  constexpr u32 pitch = sums_pitch(BN);
  float* const own = reinterpret_cast<float*>(inbox_memory + inbox_bytes);
  float* const received =
      inbox_apart ? reinterpret_cast<float*>(inbox_memory + 16) : own + BM * pitch;
  if (!inbox_apart) inbox.let_others_send();
  const auto place = [&](u32 row, u32 four) { return own + row * pitch + four * 4; };
  GRETA_UNROLL
  for (u32 i = 0; i < pieces; ++i) {
    const Position at = piece_position(i);
    store_piece<piece_width>(sums, i, 0, own + at.row * pitch + at.col, pitch);
  }
  block_barrier();
  inbox.await_others();
  const u32 rank = block_z();
  for (u32 e = thread_index(); e < (SPLIT - 1) * share_fours; e += THREADS) {
    const u32 other = e / share_fours, to = other + (other >= rank), at = e % share_fours;
    if (!has_row(to, at / (BN / 4))) continue;
    const Pack<float, 4> pack = load_pack<4>(place(first_row(to) + at / (BN / 4), at % (BN / 4)));
    const float four[4] = {element(pack, 0), element(pack, 1), element(pack, 2), element(pack, 3)};
    inbox.send(to, received + ((rank - (rank > to)) * share_fours + at) * 4, four);
  }
  inbox.receive();
  for (u32 at = thread_index(); at < share_fours; at += THREADS) {
    if (!has_row(rank, at / (BN / 4))) continue;
    const u32 row = first_row(rank) + at / (BN / 4);
    float sum[4] = {};
    GRETA_UNROLL
    for (u32 s = 0; s < SPLIT; ++s) {  // in the order of K
      const float* const from = s == rank ? place(row, at % (BN / 4))
                                          : received + ((s - (s > rank)) * share_fours + at) * 4;
      const Pack<float, 4> pack = load_pack<4>(from);
      GRETA_UNROLL
      for (int j = 0; j < 4; ++j) sum[j] = s == 0 ? element(pack, j) : sum[j] + element(pack, j);
    }
    if (tile.row + row < args.m) put4(args, tile.row + row, tile.col + at % (BN / 4) * 4, sum);
  }
}
#else
#define MATRIX_KERNEL GRETA_KERNEL(THREADS)
constexpr u32 inbox_bytes = 0;
#endif

// Of shared memory: an inbox, then the tiles, and when they are done, sums in their place.
GRETA_DEVICE constexpr u32 shared_bytes() {
#if FOLD == 2
  const u32 sums = BM * sums_pitch(BN) * 4 + (inbox_apart ? 0 : received_bytes);
#else
  const u32 sums = THREADS / WAVE * piece_rows * sums_pitch(piece_columns) * 4;
#endif
  const u32 tiles = STAGES * stage_bytes;
  return inbox_bytes + (tiles > sums ? tiles : sums);
}

MATRIX_KERNEL GEMM_ENTRY(matrix)(GEMM_PARAMETERS) {
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
  const Group group = find_group<BM>(all, tile.row / BM);
  if (GROUPED && group.row >= group.rows) return;
  const Arguments args = of_group(all, group);
  tile.row = group.row;
  const u32 k_begin = smaller(block_z() * slice, k);
  const u32 k_end = smaller(k_begin + slice, k);
  Pipeline pipeline;
  pipeline.shared = shared_memory(shared + inbox_bytes);
  const u32 a_length = A_ALONG_K ? k : args.m, b_length = B_ALONG_K ? k : n;
  pipeline.a.start(args.a, tile.row, args.m, ALIGN_A ? aligned_stride(a_length) : a_length, k_begin);
  pipeline.b.start(args.b, tile.col, n, ALIGN_B ? aligned_stride(b_length) : b_length, k_begin);
  Sums sums = {};
  pipeline.walk(k_end - k_begin, sums);

#if FOLD == 2
  add_in_cluster(args, shared, tile, sums);
#else
  hand_out(reinterpret_cast<float*>(shared), tile, sums,
           [&](u32 row, u32 col, const float(&four)[4]) {
#if SPLIT > 1
             if (row < args.m) put_partial4(args, block_z(), row, col, four);
#else
             if (row < args.m) put4(args, row, col, four);
#endif
           });
#endif
#if FOLD == 1
  u32* const counter = counters + block_index<THREADS>();
  block_barrier();
  if (!last_to_arrive(counter, SPLIT, reinterpret_cast<u32*>(shared))) return;
  add_slices(args, tile);
#endif
}
