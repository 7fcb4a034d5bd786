// How the sums of tiled.hip's threads become elements of C, or a slice's share of them. With FOLD=0
// slices go to the workspace for reduce.hip. With FOLD=1 the last slice of a tile to arrive adds them
// all. With FOLD=2 the slices of a tile are a cluster, and send each other what the others add.
#pragma once

#include "gemm/operands.hip"
#include "gemm/tile_order.hip"
#if FOLD == 1
#include "gemm/add_slices.hip"
#elif FOLD == 2
#include "common/cluster.hip"
#endif

typedef f32x2 Sums[TM][TN / 2];
constexpr u32 pieces = TM * TN / 4;  // four neighbours of a row each

// Piece `index` of a thread whose first row and column are these.
struct Piece {
  u32 row, col;
  float sum[4];

  GRETA_DEVICE Piece(const Sums& sums, u32 index, u32 first_row, u32 first_col) {
    const u32 i = index / (TN / 4), j = index % (TN / 4) * 4;
    row = first_row + i / 4 * TY * 4 + i % 4;
    col = first_col + j * TX;
    GRETA_UNROLL
    for (u32 e = 0; e < 4; ++e) sum[e] = sums[i][(j + e) / 2][e % 2];
  }
};

#if FOLD == 2
static_assert(SPLIT <= pieces, "each slice adds some pieces");

// The slice that adds a piece of all threads, and the first one that a slice adds.
GRETA_DEVICE constexpr u32 adder(u32 piece) { return piece * SPLIT / pieces; }
GRETA_DEVICE constexpr u32 first_piece(u32 slice) { return (slice * pieces + SPLIT - 1) / SPLIT; }
constexpr u32 most_added = (pieces + SPLIT - 1) / SPLIT;  // pieces of a slice

// What other slices send has a place of its own if it is little, before the tiles, so that nobody
// waits until others are done with theirs; else it takes the tiles' place.
constexpr u32 received_bytes = (SPLIT - 1) * most_added * THREADS * 16;
constexpr bool inbox_apart = received_bytes <= 16384;
constexpr u32 inbox_bytes = 16 + (inbox_apart ? received_bytes : 0);
constexpr u32 received_later = inbox_apart ? 0 : received_bytes;
GRETA_DEVICE constexpr u32 received_by(u32 slice) {
  return (SPLIT - 1) * (first_piece(slice + 1) - first_piece(slice)) * THREADS * 16;
}

GRETA_DEVICE void add_in_cluster(const Arguments& args, u8* shared, u32 row, u32 col,
                                 const Sums& sums) {
  const Inbox inbox{reinterpret_cast<u64*>(shared)};
  float* const received = reinterpret_cast<float*>(shared + 16);
  const u32 own = block_z();
  // Where what `from` sends of a piece lies in the memory of the slice that adds it.
  const auto place = [&](u32 from, u32 piece) {
    const u32 to = adder(piece), number = (from - (from > to)) * most_added + piece - first_piece(to);
    return received + (number * THREADS + thread_index()) * 4;
  };
  if (!inbox_apart) inbox.let_others_overwrite();
  inbox.await_others();
  GRETA_UNROLL
  for (u32 i = 0; i < pieces; ++i) {
    if (adder(i) != own) inbox.send(adder(i), place(own, i), Piece(sums, i, row, col).sum);
  }
  inbox.receive();
  GRETA_UNROLL
  for (u32 i = 0; i < pieces; ++i) {
    if (adder(i) != own) continue;
    const Piece piece(sums, i, row, col);
    float sum[4] = {};
    GRETA_UNROLL
    for (u32 s = 0; s < SPLIT; ++s) {  // in the order of K
      float four[4] = {piece.sum[0], piece.sum[1], piece.sum[2], piece.sum[3]};
      if (s != adder(i)) {
        const Pack<float, 4> pack = load_pack<4>(place(s, i));
        GRETA_UNROLL
        for (u32 e = 0; e < 4; ++e) four[e] = element(pack, e);
      }
      GRETA_UNROLL
      for (u32 e = 0; e < 4; ++e) sum[e] = s == 0 ? four[e] : sum[e] + four[e];
    }
    if (piece.row < args.m) put4(args, piece.row, piece.col, sum);
  }
}
#else
constexpr u32 inbox_bytes = 0, received_later = 0;
#endif

// Stores the thread's sums, or with slices leaves its share of them. The residual of several pieces is
// loaded before the first of these is stored.
GRETA_DEVICE void put_pieces(const Arguments& args, u32 row, u32 col, const Sums& sums) {
#if SPLIT > 1
  GRETA_UNROLL
  for (u32 i = 0; i < pieces; ++i) {
    const Piece piece(sums, i, row, col);
    if (piece.row < args.m) put_partial4(args, block_z(), piece.row, piece.col, piece.sum);
  }
#else
  constexpr u32 together = smaller(pieces, 8);
  GRETA_UNROLL
  for (u32 first = 0; first < pieces; first += together) {
    Residual4 residual[together];
    GRETA_UNROLL
    for (u32 i = first; i < smaller(pieces, first + together); ++i) {
      const Piece piece(sums, i, row, col);
      residual[i - first].load(args, piece.row, piece.col);
    }
    GRETA_UNROLL
    for (u32 i = first; i < smaller(pieces, first + together); ++i) {
      const Piece piece(sums, i, row, col);
      if (piece.row < args.m) put4(args, piece.row, piece.col, piece.sum, residual[i - first]);
    }
  }
#endif
}

// `tile`: that of the workgroup; row and col: this thread's first ones. `shared`: the inbox, and
// after it the tiles, which nobody reads or writes any more.
GRETA_DEVICE void put_tile(const Arguments& args, u8* shared, Position tile, u32 row, u32 col,
                           const Sums& sums) {
#if FOLD == 2
  add_in_cluster(args, shared, row, col, sums);
#else
  put_pieces(args, row, col, sums);
#endif
#if FOLD == 1
  u32* const counter = args.counters + block_index<THREADS>();
  if (last_to_arrive(counter, SPLIT, reinterpret_cast<u32*>(shared))) add_slices(args, tile);
#endif
}
