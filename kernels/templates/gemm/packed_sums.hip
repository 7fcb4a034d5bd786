// How sums of warpgroups become elements of C of 16 bits: each lane computes the elements whose sums
// it holds, and these go through shared memory, so that neighbouring lanes store 16 bytes each of
// one row. The residual takes the same way in the other direction: as much of it as registers have room
// for is loaded before the products, the rest while columns before it are stored. With GATED, a lane's
// two neighbours are the gate and the up of one element. The file that includes this has the tile's
// pieces of 16 rows (warpgroup_tile.hip), and defines EARLY_PARTS.
#pragma once

#include "gemm/operands.hip"
#include "gemm/warpgroup_tile.hip"

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

  // Where the lane's unit e lies.
  static GRETA_DEVICE Position unit(u32 e) {
    const u32 index = e * wave_size + lane_index();
    return {index / (elements / 8), index % (elements / 8) * 8};
  }

  GRETA_DEVICE bool inside(const Arguments& args, Position unit) const {
    return at.row + unit.row < args.m && at.col + unit.col < args.n;
  }

  GRETA_DEVICE void load_residual(const Arguments& args, Eight (&residual)[most_units]) const {
    GRETA_UNROLL
    for (u32 e = 0; e < units; ++e) {
      const Position u = unit(e);
      residual[e] = {};
      if (inside(args, u)) {
        residual[e] = load_pack<8>(args.residual + c_place(args, at.row + u.row, at.col + u.col));
      }
    }
  }

#if GATED
  GRETA_DEVICE void compute(const Arguments& args, Out* buffer, const Sums& sums) const {
    const u32 row = lane_index() / 4, place = lane_index() % 4;
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
        buffer[(row + half * 8) * pitch + c / 2 + place] = narrow<Out>(activate(gate) * up);
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
    GRETA_UNROLL
    for (u32 c = 0; c < width; c += eights * 8) {
      float x[eights][2][2];
      GRETA_UNROLL
      for (u32 e = 0; e < eights; ++e) {
        const u32 col = c + e * 8;
#if HAS_BIAS
        Two bias = {};
        if (at.col + col < args.n) bias = load_pack<2>(args.bias + at.col + col + pair);
#endif
        GRETA_UNROLL
        for (u32 half = 0; half < 2; ++half) {
          const float(&eight)[4] = sums[piece].eight[(first + col) / 8];
          GRETA_UNROLL
          for (u32 j = 0; j < 2; ++j) x[e][half][j] = scaled(args, eight[half * 2 + j]);
#if HAS_BIAS
          GRETA_UNROLL
          for (u32 j = 0; j < 2; ++j) x[e][half][j] += element(bias, j);
#endif
#if HAS_RESIDUAL
          const Two residual =
              load_pack<2>(static_cast<const Out*>(buffer) + (row + half * 8) * pitch + col + pair);
          GRETA_UNROLL
          for (u32 j = 0; j < 2; ++j) x[e][half][j] += element(residual, j);
#endif
        }
      }
      GRETA_UNROLL
      for (u32 i = 0; i < eights * 4; ++i) x[i / 4][i / 2 % 2][i % 2] = activate(x[i / 4][i / 2 % 2][i % 2]);
      GRETA_UNROLL
      for (u32 i = 0; i < eights * 2; ++i) {
        store_pack(buffer + (row + i % 2 * 8) * pitch + c + i / 2 * 8 + pair,
                   narrow_pack<Out>(x[i / 2][i % 2]));
      }
    }
  }
#endif

  // `load_next` loads what comes later to the registers of `residual`.
  template <typename Next>
  GRETA_DEVICE void put(const Arguments& args, Out* buffer, const Sums& sums,
                        const Eight (&residual)[most_units], const Next& load_next) const {
#if HAS_RESIDUAL
    GRETA_UNROLL
    for (u32 e = 0; e < units; ++e) {
      store_pack(buffer + unit(e).row * pitch + unit(e).col, residual[e]);
    }
    load_next();
    wave_barrier();
#endif
    compute(args, buffer, sums);
    wave_barrier();
    GRETA_UNROLL
    for (u32 e = 0; e < units; ++e) {
      const Position u = unit(e);
      const Eight elements = load_pack<8>(static_cast<const Out*>(buffer) + u.row * pitch + u.col);
      if (inside(args, u)) {
        store_eight(args.c + c_place(args, at.row + u.row, at.col + u.col), elements);
      }
    }
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
  GRETA_DEVICE const Eight (&of_part() const)[most_units] {
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

  Eight of_[slots][most_units];

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
