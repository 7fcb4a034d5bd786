// How the sums that a workgroup's waves hold become elements of C, or a slice's share of them. The
// file that includes this has the tile of C and its parts (Sums, pieces, store_piece), THREADS, the
// number of threads that hold sums, and team_barrier(), which these meet at.
#pragma once

#include "gemm/operands.hip"
#include "gemm/tile_order.hip"
#if FOLD == 1
#include "gemm/add_slices.hip"
#elif FOLD == 2
#include "common/cluster.hip"
#endif

#if !defined(SUM_COLUMNS)
#error "SUM_COLUMNS, the columns that a wave stores at a time, must be defined"
#endif

// Hands the wave's sums, a unit of neighbours in a row at a time, to `put`. They go through shared
// memory, a piece of its rows at a time, so that neighbouring lanes get neighbouring columns.
constexpr u32 piece_columns = piece_width < SUM_COLUMNS ? piece_width : SUM_COLUMNS;
constexpr u32 rest_columns = piece_width % piece_columns;
constexpr u32 last_columns = rest_columns > 0 ? rest_columns : piece_columns;
constexpr u32 parts_of_piece = (piece_width + piece_columns - 1) / piece_columns;
constexpr u32 most_units = piece_rows * piece_columns / unit_columns / wave_size;  // of a lane

// Columns of a wave's pieces that are handed out together.
struct Columns {
  u32 piece, first;
  u32 width;

  static GRETA_DEVICE constexpr Columns at(u32 index) {
    const u32 first = index % parts_of_piece * piece_columns;
    return {index / parts_of_piece, first, smaller(piece_width - first, piece_columns)};
  }
  // Where the lane's unit number e lies in them.
  GRETA_DEVICE Position place(u32 e) const {
    const u32 unit = e * wave_size + lane_index(), row_units = width / unit_columns;
    return {unit / row_units, unit % row_units * unit_columns};
  }
  GRETA_DEVICE Position start(Position tile) const {
    const Position at = piece_position(piece);
    return {tile.row + at.row, tile.col + at.col + first};
  }
};

template <u32 width, typename Put>
GRETA_DEVICE void put_columns(float* piece, Position tile, const Sums& sums, Columns columns,
                              const Put& put, const typename Put::Loaded (&loaded)[most_units]) {
  constexpr u32 pitch = sums_pitch(width);
  static_assert(piece_rows * width / unit_columns % wave_size == 0, "lanes have equal numbers of units");
  store_piece<width>(sums, columns.piece, columns.first, piece, pitch);
  wave_barrier();
  const Position start = columns.start(tile);
  GRETA_UNROLL
  for (u32 e = 0; e < piece_rows * width / unit_columns / wave_size; ++e) {
    const Position at = columns.place(e);
    const auto pack = load_pack<unit_columns>(piece + at.row * pitch + at.col);
    float sum[unit_columns];
    GRETA_UNROLL
    for (u32 j = 0; j < unit_columns; ++j) sum[j] = element(pack, j);
    put(start.row + at.row, start.col + at.col, sum, loaded[e]);
  }
  wave_barrier();
}

// A known number of iterations, or clang keeps the loop and puts `loaded` into memory.
template <u32 width, typename Put>
GRETA_DEVICE void load_columns(Position tile, Columns columns, const Put& put,
                               typename Put::Loaded (&loaded)[most_units]) {
  const Position start = columns.start(tile);
  GRETA_UNROLL
  for (u32 e = 0; e < piece_rows * width / unit_columns / wave_size; ++e) {
    const Position at = columns.place(e);
    loaded[e] = put.load(start.row + at.row, start.col + at.col);
  }
}

template <typename Put>
GRETA_DEVICE void load_columns(Position tile, Columns columns, const Put& put,
                               typename Put::Loaded (&loaded)[most_units]) {
  if (columns.width < piece_columns) {
    load_columns<last_columns>(tile, columns, put, loaded);
  } else {
    load_columns<piece_columns>(tile, columns, put, loaded);
  }
}

// `put` gets what it has loaded while the columns before were stored, or right before these are stored where
// registers have no room for both.
template <typename Put>
GRETA_DEVICE void hand_out(float* shared, Position tile, const Sums& sums, const Put& put) {
  constexpr u32 parts = pieces * parts_of_piece;
  float* const piece = shared + wave_index() * (piece_rows * sums_pitch(piece_columns));
  constexpr u32 registers = most_units * ((sizeof(typename Put::Loaded) + 3) / 4);
  constexpr u32 of_sums = pieces * piece_rows * piece_width / wave_size, others = 24;
  constexpr bool room = of_sums + 2 * registers + others <= 65536 / THREADS;
  constexpr u32 buffers = registers <= 16 && room ? 2 : 1;
  typename Put::Loaded loaded[buffers][most_units];
  if (buffers > 1) load_columns(tile, Columns::at(0), put, loaded[0]);
  GRETA_UNROLL
  for (u32 i = 0; i < parts; ++i) {
    const Columns columns = Columns::at(i);
    const u32 next = i + buffers - 1;
    if (next < parts) load_columns(tile, Columns::at(next), put, loaded[next % buffers]);
    if (columns.width < piece_columns) {
      put_columns<last_columns>(piece, tile, sums, columns, put, loaded[i % buffers]);
    } else {
      put_columns<piece_columns>(piece, tile, sums, columns, put, loaded[i % buffers]);
    }
  }
}

#if SPLIT > 1
// Stores a slice's sums.
struct PutSums {
  struct Loaded {};

  const Arguments& args;

  GRETA_DEVICE Loaded load(u32, u32) const { return {}; }
  GRETA_DEVICE void operator()(u32 row, u32 col, const float (&sum)[unit_columns], Loaded) const {
    if (row < args.m) put_partial_unit(args, block_z(), row, col, sum);
  }
};
#else
// Stores elements of C. The residual is loaded while the columns before are stored.
struct PutSums {
  typedef UnitResidual Loaded;

  const Arguments& args;

  GRETA_DEVICE Loaded load(u32 row, u32 col) const {
    Loaded loaded;
    loaded.load(args, row, col);
    return loaded;
  }
  GRETA_DEVICE void operator()(u32 row, u32 col, const float (&sum)[unit_columns],
                               const Loaded& loaded) const {
    if (row < args.m) put_unit(args, row, col, sum, loaded);
  }
};
#endif

#if FOLD == 2
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

// What a thread stores of this block's share: a unit of each THREADS.
struct SharedRows {
  static constexpr u32 row_units = BN / unit_columns, all = share * row_units;
  static constexpr u32 of_thread = (all + THREADS - 1) / THREADS;

  const Arguments& args;
  Position tile;
  u32 rank;

  static GRETA_DEVICE u32 unit(u32 i) { return thread_index() + i * THREADS; }
  // In the tile.
  GRETA_DEVICE Position place(u32 unit) const {
    return {first_row(rank) + unit / row_units, unit % row_units * unit_columns};
  }
  GRETA_DEVICE bool has(u32 unit) const {
    return unit < all && has_row(rank, unit / row_units) && tile.row + place(unit).row < args.m;
  }
};

// The residual of some of the units that a thread stores. Of the first ones it is loaded while slices send
// their sums: of all if they are packs, as registers that had the sums have room for them.
struct SharedResidual {
  static constexpr u32 units =
      !HAS_RESIDUAL ? 1 : STORE_VEC == 4 ? SharedRows::of_thread : smaller(SharedRows::of_thread, 8);
  UnitResidual of[units];

  GRETA_DEVICE void load(const SharedRows& rows, u32 first) {
    GRETA_UNROLL
    for (u32 i = 0; i < units; ++i) {
      const u32 unit = SharedRows::unit(first + i);
      const Position at = rows.place(unit);
      of[i] = {};
      if (rows.has(unit)) of[i].load(rows.args, rows.tile.row + at.row, rows.tile.col + at.col);
    }
  }
};

// Adds the slices' sums of a unit in the order of K. `own`: this block's tile.
GRETA_DEVICE void add_slices_of(const SharedRows& rows, u32 unit, const float* own, const float* received,
                                float (&sum)[unit_columns]) {
  const Position at = rows.place(unit);
  GRETA_UNROLL
  for (u32 s = 0; s < SPLIT; ++s) {
    const float* const from =
        s == rows.rank ? own + at.row * sums_pitch(BN) + at.col
                       : received + (s - (s > rows.rank)) * share_fours * 4 + unit * unit_columns;
    const auto pack = load_pack<unit_columns>(from);
    GRETA_UNROLL
    for (u32 j = 0; j < unit_columns; ++j) sum[j] = s == 0 ? element(pack, j) : sum[j] + element(pack, j);
  }
}

GRETA_DEVICE void add_in_cluster(const Arguments& args, u8* inbox_memory, Position tile,
                                 const Sums& sums) {
  const Inbox inbox{reinterpret_cast<u64*>(inbox_memory)};
  constexpr u32 pitch = sums_pitch(BN);
  float* const own = reinterpret_cast<float*>(inbox_memory + inbox_bytes);
  float* const received =
      inbox_apart ? reinterpret_cast<float*>(inbox_memory + 16) : own + BM * pitch;
  if (!inbox_apart) inbox.let_others_overwrite();
  const auto place = [&](u32 row, u32 four) { return own + row * pitch + four * 4; };
  GRETA_UNROLL
  for (u32 i = 0; i < pieces; ++i) {
    const Position at = piece_position(i);
    store_piece<piece_width>(sums, i, 0, own + at.row * pitch + at.col, pitch);
  }
  const u32 rank = block_z();
  const SharedRows rows{args, tile, rank};
  SharedResidual residual;
  residual.load(rows, 0);
  team_barrier();
  inbox.await_others();
  for (u32 e = thread_index(); e < (SPLIT - 1) * share_fours; e += THREADS) {
    const u32 other = e / share_fours, to = other + (other >= rank), at = e % share_fours;
    if (!has_row(to, at / (BN / 4))) continue;
    const Pack<float, 4> pack = load_pack<4>(place(first_row(to) + at / (BN / 4), at % (BN / 4)));
    const float four[4] = {element(pack, 0), element(pack, 1), element(pack, 2), element(pack, 3)};
    inbox.send(to, received + ((rank - (rank > to)) * share_fours + at) * 4, four);
  }
  inbox.receive();
  for (u32 first = 0; first < SharedRows::of_thread; first += SharedResidual::units) {
    if (first > 0) residual.load(rows, first);
    GRETA_UNROLL
    for (u32 i = 0; i < SharedResidual::units; ++i) {
      const u32 unit = SharedRows::unit(first + i);
      if (!rows.has(unit)) continue;
      float sum[unit_columns] = {};
      add_slices_of(rows, unit, own, received, sum);
      const Position at = rows.place(unit);
      put_unit(args, tile.row + at.row, tile.col + at.col, sum, residual.of[i]);
    }
  }
}
#else
constexpr u32 inbox_bytes = 0;
#endif

// Bytes that sums take when the waves hand them out, or with FOLD=2 all of them and what is received.
GRETA_DEVICE constexpr u32 sums_bytes() {
#if FOLD == 2
  return BM * sums_pitch(BN) * 4 + (inbox_apart ? 0 : received_bytes);
#else
  return THREADS / WAVE * piece_rows * sums_pitch(piece_columns) * 4;
#endif
}

// Stores the tile, or adds it to the other slices' sums. `shared`: the inbox, and behind it
// sums_bytes() that nobody uses any more.
GRETA_DEVICE void put_tile(const Arguments& args, u8* shared, Position tile, const Sums& sums) {
#if FOLD == 2
  add_in_cluster(args, shared, tile, sums);
#else
  hand_out(reinterpret_cast<float*>(shared), tile, sums, PutSums{args});
#endif
#if FOLD == 1
  u32* const counter = args.counters + block_index<THREADS>();
  team_barrier();
  if (!last_to_arrive(counter, SPLIT, reinterpret_cast<u32*>(shared), [] { team_barrier(); })) return;
  add_slices(args, tile);
#endif
}
