// How sums of warpgroups become elements of C of 16 bits: each lane computes the elements whose sums
// it holds, and these go through shared memory, so that neighbouring lanes store 16 bytes each of
// one row. The residual takes the same way in the other direction: as much of it as registers have room
// for is loaded before the products, the rest while columns before it are stored. With GATED, a lane's
// two neighbours are the gate and the up of one element. Where rows of C do not all begin at multiples of
// 16 bytes, they lie in shared memory as they do in device memory (shifted_rows.hip): SHIFTED is the smallest
// number of elements by which, 1 or 2; else it is 0. The file that includes this has the tile's pieces of 16 rows
// (warpgroup_tile.hip), and defines EARLY_PARTS.
#pragma once

#include "common/shifted_rows.hip"
#include "gemm/operands.hip"
#include "gemm/warpgroup_tile.hip"

#if !defined(SHIFTED) || SHIFTED < 0 || SHIFTED > 2
#error "SHIFTED must be defined: 0, 1 or 2"
#endif

static_assert(sizeof(Out) == 2 && !swapped, "elements of 16 bits, in pieces of 16 rows");

// Columns that a wave stores at a time.
constexpr u32 most_packed_columns = piece_width < 64 ? piece_width : 64;
// Columns of sums of an element.
constexpr u32 columns_of_element = GATED ? 2 : 1;
static_assert(!GATED || piece_width % 32 == 0, "lanes have equal numbers of units of gates");
// For `width` columns of sums.
GRETA_DEVICE constexpr u32 packed_pitch(u32 width) { return width / columns_of_element + 8; }
GRETA_DEVICE constexpr u32 sums_bytes() {
  return THREADS / WAVE * 16 * packed_pitch(most_packed_columns) * 2;
}
constexpr u32 inbox_bytes = 0;  // slices are not added here
// Units of 8 elements of each lane in so many columns.
constexpr u32 most_units = most_packed_columns / columns_of_element / 16;

typedef Pack<Out, 8> Eight;

// Stores with one instruction; compilers split some.
GRETA_DEVICE void store_eight(Out* to, const Eight& eight) {
#if defined(GRETA_NVIDIA)
  const u32(&words)[4] = eight.raw.word;
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words[0]), "r"(words[1]),
               "r"(words[2]), "r"(words[3])
               : "memory");
#else
  store_pack(to, eight);
#endif
}

// Two neighbours in a row whose sums a lane holds.
typedef Pack<Out, 2> Two;

// Those in shared memory.
GRETA_DEVICE void load_two(const Out* from, float (&x)[2]) {
  if constexpr (SHIFTED == 1) {
    GRETA_UNROLL
    for (u32 j = 0; j < 2; ++j) x[j] = to_float(from[j]);
  } else {
    const Two two = load_pack<2>(from);
    GRETA_UNROLL
    for (u32 j = 0; j < 2; ++j) x[j] = element(two, j);
  }
}
GRETA_DEVICE void store_two(Out* to, const float (&x)[2]) {
  if constexpr (SHIFTED == 1) {
    GRETA_UNROLL
    for (u32 j = 0; j < 2; ++j) to[j] = narrow<Out>(x[j]);
  } else {
    store_pack(to, narrow_pack<Out>(x));
  }
}

// What a lane has of a part's rows: units of 8 elements, and with SHIFTED some elements of their ends.
struct RowUnits {
  Eight eight[most_units];
#if SHIFTED
  Out end[16 * 8 / wave_size];
#endif
};

// `width` columns of a piece, from column `first` on, that start at `at` in C.
template <u32 width>
struct PackedColumns {
  static constexpr u32 elements = width / columns_of_element;  // of a row
  static constexpr u32 units = elements / 16;                  // of 8 elements, of each lane
  static constexpr u32 pitch = packed_pitch(width);

  u32 piece, first;
  Position at;

  GRETA_DEVICE PackedColumns(Position tile, u32 i, u32 from) : piece(i), first(from) {
    const Position start = piece_position(i);
    at = {tile.row + start.row, (tile.col + start.col + from) / columns_of_element};
  }

  // The number of these columns that C has.
  GRETA_DEVICE u32 live_columns(const Arguments& args) const {
    return at.col < args.n ? smaller(args.n - at.col, elements) : 0;
  }
  GRETA_DEVICE u32 live_rows(const Arguments& args) const {
    return at.row < args.m ? smaller(args.m - at.row, 16) : 0;
  }

#if SHIFTED
  typedef ShiftedRows<Out, elements, pitch> Rows;

  // Where the row begins in C and in the residual.
  GRETA_DEVICE u64 row_place(const Arguments& args, u32 row) const {
    return c_place(args, at.row + row, at.col);
  }
  GRETA_DEVICE u32 shift(const Arguments& args, u32 row) const {
    return shift_of(args.c + row_place(args, row));
  }
  // Where the lane's part of the row is in the buffer.
  GRETA_DEVICE Out* row_in(const Arguments& args, Out* buffer, u32 row) const {
    return buffer + row * pitch + shift(args, row);
  }

  // Of the last columns of C, nothing is loaded ahead.
  GRETA_DEVICE void load_residual(const Arguments& args, RowUnits& residual) const {
    if (live_columns(args) < elements) return;
    const u32 rows = live_rows(args);
    const auto of_row = [&](u32 row) { return shift(args, row); };
    GRETA_UNROLL
    for (u32 e = 0; e < Rows::units; ++e) {
      const typename Rows::Place u = Rows::unit_place(e, of_row);
      residual.eight[e] = {};
      if (u.row < rows) residual.eight[e] = load_pack<8>(args.residual + row_place(args, u.row) + u.col);
    }
    GRETA_UNROLL
    for (u32 e = 0; e < Rows::ends; ++e) {
      const typename Rows::Place u = Rows::end_place(e, of_row);
      residual.end[e] = {};
      if (u.row < rows) residual.end[e] = args.residual[row_place(args, u.row) + u.col];
    }
  }

  GRETA_DEVICE void put_residual(const Arguments& args, Out* buffer, const RowUnits& residual) const {
    const u32 cols = live_columns(args), rows = live_rows(args);
    const auto of_row = [&](u32 row) { return shift(args, row); };
    if (cols < elements) {
      GRETA_NO_UNROLL
      for (u32 index = lane_index(); index < 16 * elements; index += wave_size) {
        const u32 row = index / elements, col = index % elements;
        if (row >= rows || col >= cols) continue;
        row_in(args, buffer, row)[col] = args.residual[row_place(args, row) + col];
      }
      return;
    }
    GRETA_UNROLL
    for (u32 e = 0; e < Rows::units; ++e) {
      const typename Rows::Place u = Rows::unit_place(e, of_row);
      if (u.row < 16) store_pack(buffer + u.in_memory, residual.eight[e]);
    }
    GRETA_UNROLL
    for (u32 e = 0; e < Rows::ends; ++e) {
      buffer[Rows::end_place(e, of_row).in_memory] = residual.end[e];
    }
  }

  GRETA_DEVICE void store(const Arguments& args, const Out* buffer) const {
    Rows::store(buffer, live_rows(args), live_columns(args),
                [&](u32 row) { return args.c + row_place(args, row); });
  }
#else
  // Where the lane's unit e lies.
  static GRETA_DEVICE Position unit(u32 e) {
    const u32 index = e * wave_size + lane_index();
    return {index / (elements / 8), index % (elements / 8) * 8};
  }

  GRETA_DEVICE bool inside(const Arguments& args, Position unit) const {
    return at.row + unit.row < args.m && at.col + unit.col < args.n;
  }

  GRETA_DEVICE Out* row_in(const Arguments&, Out* buffer, u32 row) const { return buffer + row * pitch; }

  GRETA_DEVICE void load_residual(const Arguments& args, RowUnits& residual) const {
    GRETA_UNROLL
    for (u32 e = 0; e < units; ++e) {
      const Position u = unit(e);
      residual.eight[e] = {};
      if (inside(args, u)) {
        residual.eight[e] = load_pack<8>(args.residual + c_place(args, at.row + u.row, at.col + u.col));
      }
    }
  }

  GRETA_DEVICE void put_residual(const Arguments&, Out* buffer, const RowUnits& residual) const {
    GRETA_UNROLL
    for (u32 e = 0; e < units; ++e) {
      store_pack(buffer + unit(e).row * pitch + unit(e).col, residual.eight[e]);
    }
  }

  GRETA_DEVICE void store(const Arguments& args, const Out* buffer) const {
    GRETA_UNROLL
    for (u32 e = 0; e < units; ++e) {
      const Position u = unit(e);
      const Eight elements = load_pack<8>(buffer + u.row * pitch + u.col);
      if (inside(args, u)) {
        store_eight(args.c + c_place(args, at.row + u.row, at.col + u.col), elements);
      }
    }
  }
#endif

#if GATED
  GRETA_DEVICE void compute(const Arguments& args, Out* buffer, const Sums& sums) const {
    const u32 row = lane_index() / 4, place = lane_index() % 4;
    Out* const rows[2] = {row_in(args, buffer, row), row_in(args, buffer, row + 8)};
    GRETA_UNROLL
    for (u32 c = 0; c < width; c += 8) {
      const u32 col = at.col + c / 2 + place;
      float gate_bias = 0.0f, up_bias = 0.0f;
#if HAS_BIAS
      if (col < args.n) {
        gate_bias = to_float(args.bias[col]);
        up_bias = to_float(args.bias[args.n + col]);
      }
#endif
      GRETA_UNROLL
      for (u32 half = 0; half < 2; ++half) {
        const float(&eight)[4] = sums[piece].eight[(first + c) / 8];
        const float gate = scaled(args, eight[half * 2]) + gate_bias;
        const float up = scaled(args, eight[half * 2 + 1]) + up_bias;
        rows[half][c / 2 + place] = narrow<Out>(activate(gate) * up);
      }
    }
  }
#else
  // The elements go to where the residual's are. Activations of several take turns, as each waits for its
  // exponential and its reciprocal.
  GRETA_DEVICE void compute(const Arguments& args, Out* buffer, const Sums& sums) const {
    constexpr u32 eights = ACTIVATION != 0 ? 2 : 1;  // of columns, at the same time
    static_assert(width % (eights * 8) == 0, "whole eights");
    const u32 lane = lane_index(), row = lane / 4, pair = lane % 4 * 2;
    Out* const rows[2] = {row_in(args, buffer, row) + pair, row_in(args, buffer, row + 8) + pair};
    GRETA_UNROLL
    for (u32 c = 0; c < width; c += eights * 8) {
      float x[eights][2][2];
      GRETA_UNROLL
      for (u32 e = 0; e < eights; ++e) {
        const u32 col = c + e * 8;
#if HAS_BIAS
        const u32 bias_at = at.col + col + (SHIFTED ? pair : 0);
        float bias[2] = {};
        if constexpr (SHIFTED == 1) {
          GRETA_UNROLL
          for (u32 j = 0; j < 2; ++j) {
            if (bias_at + j < args.n) bias[j] = to_float(args.bias[bias_at + j]);
          }
        } else if (bias_at < args.n) {
          load_two(args.bias + at.col + col + pair, bias);
        }
#endif
        GRETA_UNROLL
        for (u32 half = 0; half < 2; ++half) {
          const float(&eight)[4] = sums[piece].eight[(first + col) / 8];
          GRETA_UNROLL
          for (u32 j = 0; j < 2; ++j) x[e][half][j] = scaled(args, eight[half * 2 + j]);
#if HAS_BIAS
          GRETA_UNROLL
          for (u32 j = 0; j < 2; ++j) x[e][half][j] += bias[j];
#endif
#if HAS_RESIDUAL
          float residual[2];
          load_two(rows[half] + col, residual);
          GRETA_UNROLL
          for (u32 j = 0; j < 2; ++j) x[e][half][j] += residual[j];
#endif
        }
      }
      GRETA_UNROLL
      for (u32 i = 0; i < eights * 4; ++i) x[i / 4][i / 2 % 2][i % 2] = activate(x[i / 4][i / 2 % 2][i % 2]);
      GRETA_UNROLL
      for (u32 i = 0; i < eights * 2; ++i) {
        store_two(rows[i % 2] + c + i / 2 * 8, x[i / 2][i % 2]);
      }
    }
  }
#endif

  // `load_next` loads what comes later to the registers of `residual`.
  template <typename Next>
  GRETA_DEVICE void put(const Arguments& args, Out* buffer, const Sums& sums,
                        const RowUnits& residual, const Next& load_next) const {
    if (SHIFTED && live_columns(args) == 0) {
      load_next();
      return;
    }
#if HAS_RESIDUAL
    put_residual(args, buffer, residual);
    load_next();
    wave_barrier();
#endif
    compute(args, buffer, sums);
    wave_barrier();
    store(args, buffer);
    wave_barrier();
  }
};

// Part i of a tile: columns of a piece that are put together.
constexpr u32 parts_of_piece = (piece_width + most_packed_columns - 1) / most_packed_columns;
constexpr u32 parts_of_tile = pieces * parts_of_piece;
GRETA_DEVICE constexpr u32 first_of_part(u32 i) { return i % parts_of_piece * most_packed_columns; }
template <u32 i>
using Part = PackedColumns<smaller(piece_width - first_of_part(i), most_packed_columns)>;
template <u32 i>
GRETA_DEVICE Part<i> part_of_tile(Position tile) {
  return {tile, i / parts_of_piece, first_of_part(i)};
}

// The residual of some parts, each of which is loaded that many parts before it is added: two at least,
// or EARLY_PARTS, which are loaded before the tile's products.
class ResidualAhead {
 public:
  GRETA_DEVICE ResidualAhead(const Arguments& args, Position tile) { load_parts<0, early>(args, tile); }
  // The products are done.
  GRETA_DEVICE void load_others(const Arguments& args, Position tile) { load_parts<early, slots>(args, tile); }

  template <u32 i>
  GRETA_DEVICE const RowUnits& of_part() const {
    return of_[i % slots];
  }
  // Part i has been added.
  template <u32 i>
  GRETA_DEVICE void load_next(const Arguments& args, Position tile) {
    if constexpr (i + slots < parts_of_tile) load<i + slots>(args, tile);
  }

 private:
  static constexpr u32 early = EARLY_PARTS;
  static constexpr u32 slots = smaller(parts_of_tile, early > 2 ? early : 2);
  static_assert(early <= parts_of_tile && early * HAS_RESIDUAL == early, "parts of a residual");

  RowUnits of_[slots];

  template <u32 i, u32 end>
  GRETA_DEVICE void load_parts(const Arguments& args, Position tile) {
    if constexpr (HAS_RESIDUAL && i < end) {
      load<i>(args, tile);
      load_parts<i + 1, end>(args, tile);
    }
  }
  template <u32 i>
  GRETA_DEVICE void load(const Arguments& args, Position tile) {
    part_of_tile<i>(tile).load_residual(args, of_[i % slots]);
  }
};

template <u32 i = 0>
GRETA_DEVICE void put_parts(const Arguments& args, Out* buffer, Position tile, const Sums& sums,
                            ResidualAhead& residual) {
  if constexpr (i < parts_of_tile) {
    part_of_tile<i>(tile).put(args, buffer, sums, residual.template of_part<i>(),
                              [&] { residual.template load_next<i>(args, tile); });
    put_parts<i + 1>(args, buffer, tile, sums, residual);
  }
}

// Stores the tile; `shared`: sums_bytes() that nobody else uses.
GRETA_DEVICE void put_tile(const Arguments& args, u8* shared, Position tile, const Sums& sums,
                           ResidualAhead& residual) {
  Out* const buffer = reinterpret_cast<Out*>(shared) +
                      wave_index() * (16 * packed_pitch(most_packed_columns));
  residual.load_others(args, tile);
  put_parts(args, buffer, tile, sums, residual);
}
