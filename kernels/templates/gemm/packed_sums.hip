// How sums of warpgroups become elements of C of 16 bits: each lane computes the elements whose sums
// it holds, and these go through shared memory, so that neighbouring lanes store 16 bytes each of
// one row. The residual takes the same way in the other direction; it is loaded while the columns
// before are stored. With GATED, a lane's two neighbours are the gate and the up of one element. The
// file that includes this has the tile's pieces of 16 rows (warpgroup_tile.hip).
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

  GRETA_DEVICE void load_residual(const Arguments& args, Eight (&residual)[units]) const {
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
  // The elements go to where the residual's are.
  GRETA_DEVICE void compute(const Arguments& args, Out* buffer, const Sums& sums) const {
    const u32 lane = lane_index(), row = lane / 4, pair = lane % 4 * 2;
    GRETA_UNROLL
    for (u32 c = 0; c < width; c += 8) {
#if HAS_BIAS
      Two bias = {};
      if (at.col + c < args.n) bias = load_pack<2>(args.bias + at.col + c + pair);
#endif
      GRETA_UNROLL
      for (u32 half = 0; half < 2; ++half) {
        Out* const to = buffer + (row + half * 8) * pitch + c + pair;
        const float(&eight)[4] = sums[piece].eight[(first + c) / 8];
        float x[2];
        GRETA_UNROLL
        for (u32 j = 0; j < 2; ++j) x[j] = scaled(args, eight[half * 2 + j]);
#if HAS_BIAS
        GRETA_UNROLL
        for (u32 j = 0; j < 2; ++j) x[j] += element(bias, j);
#endif
#if HAS_RESIDUAL
        const Two residual = load_pack<2>(static_cast<const Out*>(to));
        GRETA_UNROLL
        for (u32 j = 0; j < 2; ++j) x[j] += element(residual, j);
#endif
        GRETA_UNROLL
        for (u32 j = 0; j < 2; ++j) x[j] = activate(x[j]);
        store_pack(to, narrow_pack<Out>(x));
      }
    }
  }
#endif

  GRETA_DEVICE void put(const Arguments& args, Out* buffer, const Sums& sums,
                        const Eight (&residual)[units]) const {
#if HAS_RESIDUAL
    GRETA_UNROLL
    for (u32 e = 0; e < units; ++e) {
      store_pack(buffer + unit(e).row * pitch + unit(e).col, residual[e]);
    }
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

// Puts columns from `first` on of piece i, and loads the next columns' residual ahead of that.
template <u32 i, u32 first>
GRETA_DEVICE void put_packed_from(const Arguments& args, Out* buffer, Position tile, const Sums& sums,
                                  const Eight (&residual)[smaller(piece_width - first, most_packed_columns) / 16 / columns_of_element]) {
  constexpr u32 width = smaller(piece_width - first, most_packed_columns);
  constexpr bool ends = first + width == piece_width, last = ends && i + 1 == pieces;
  const PackedColumns<width> columns(tile, i, first);
  if constexpr (last) {
    columns.put(args, buffer, sums, residual);
  } else {
    constexpr u32 next_i = ends ? i + 1 : i, next = ends ? 0 : first + width;
    constexpr u32 next_width = smaller(piece_width - next, most_packed_columns);
    Eight ahead[next_width / 16 / columns_of_element];
#if HAS_RESIDUAL
    PackedColumns<next_width>(tile, next_i, next).load_residual(args, ahead);
#endif
    columns.put(args, buffer, sums, residual);
    put_packed_from<next_i, next>(args, buffer, tile, sums, ahead);
  }
}

// Stores the tile; `shared`: sums_bytes() that nobody else uses.
GRETA_DEVICE void put_tile(const Arguments& args, u8* shared, Position tile, const Sums& sums) {
  Out* const buffer = reinterpret_cast<Out*>(shared) +
                      wave_index() * (16 * packed_pitch(most_packed_columns));
  Eight residual[most_packed_columns / 16 / columns_of_element];
#if HAS_RESIDUAL
  PackedColumns<most_packed_columns>(tile, 0, 0).load_residual(args, residual);
#endif
  put_packed_from<0, 0>(args, buffer, tile, sums, residual);
}
