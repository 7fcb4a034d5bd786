// The WM x WN parts of a tile that warpgroups multiply straight from shared memory, in products of 64
// rows and WN columns; or where WM is not a multiple of 64, of 64 columns and WM rows, with the
// operands' roles swapped.
#pragma once

#include "common/warpgroup_matrix.hip"
#include "gemm/operands.hip"
#include "gemm/tile_order.hip"

#if BK % 64 != 0 || \
    (WM % 64 != 0 ? WM != BM || WM % 8 != 0 || WN % 64 != 0 : WN != BN && WN % 64 != 0)
#error "warpgroups need BK of 64 or 128, and parts of 64 rows or columns and of whole panels"
#endif

constexpr bool swapped = WM % 64 != 0;
constexpr u32 products = (swapped ? WN : WM) / 64;
constexpr bool one_along_k = swapped ? B_ALONG_K : A_ALONG_K;  // the operand that products divide
constexpr bool other_along_k = swapped ? A_ALONG_K : B_ALONG_K;
typedef WarpgroupSums<(swapped ? WM : WN)> Sums[products];

// The largest part of `rows` of at most 64, in whole rows of lanes.
GRETA_DEVICE constexpr u32 equal_part(u32 rows) {
  u32 part = rows < 64 ? rows : 64;
  while (rows % part != 0) part -= 8;
  return part;
}

// A wave has 16 of the 64 rows or columns of each product. A piece is what it hands out at a time.
constexpr u32 piece_rows = swapped ? equal_part(WM) : 16, piece_width = swapped ? 16 : WN;
constexpr u32 pieces_of_product = swapped ? WM / piece_rows : 1;
constexpr u32 pieces = products * pieces_of_product;

// Where the warpgroup's part of the tile starts.
GRETA_DEVICE Position warpgroup_position() {
  const u32 group = warpgroup_index() % (BM / WM * (BN / WN));  // if they compute a tile together
  return {group / (BN / WN) * WM, group % (BN / WN) * WN};
}

// Where piece i of the wave's part starts in the tile.
GRETA_DEVICE Position piece_position(u32 i) {
  const Position group = warpgroup_position();
  const u32 first = i / pieces_of_product * 64 + wave_index() % 4 * 16;
  if (swapped) return {group.row + i % pieces_of_product * piece_rows, group.col + first};
  return {group.row + first, group.col};
}

// `width` columns of piece i, from column `first` on, as rows `pitch` floats apart.
template <u32 width>
GRETA_DEVICE void store_piece(const Sums& sums, u32 i, u32 first, float* to, u32 pitch) {
  if constexpr (swapped) {
    store_transposed_sums<piece_rows>(sums[i / pieces_of_product],
                                      i % pieces_of_product * piece_rows, to, pitch);
  } else {
    store_sums<width>(sums[i], first, to, pitch);
  }
}
GRETA_DEVICE constexpr u32 sums_pitch(u32 width) { return width + 8; }

// Where the warpgroup's parts of the operands are if their tiles start with shared memory.
struct Parts {
  OperandPlace a, b;
};
template <typename TileA, typename TileB>
GRETA_DEVICE Parts warpgroup_parts(SharedMemory shared) {
  const Position group = warpgroup_position();
  return {operand_place<TileA, A_ALONG_K>(shared, TileA::template part<A_ALONG_K>(group.row, 0)),
          operand_place<TileB, B_ALONG_K>(
              shared, TileA::bytes + TileB::template part<B_ALONG_K>(group.col, 0))};
}

// Starts the first `live` products of a K step, whose tiles start at byte `start` of shared memory. Without
// `add` the sums are those of this step alone. The first step of several products must be so: where zeros
// are put into registers beside products, ptxas lets each product wait for the one before it (C7520).
template <typename TileA, typename TileB, u32 live = products, bool add = true>
GRETA_DEVICE void multiply_tiles(const Parts& parts, u32 start, Sums& sums) {
  const OperandPlace a = further(parts.a, start), b = further(parts.b, start);
  const auto place_a = [&](u32 row, u32 k) {
    return further(a, TileA::template part<A_ALONG_K>(row, k));
  };
  const auto place_b = [&](u32 column, u32 k) {
    return further(b, TileB::template part<B_ALONG_K>(column, k));
  };
  products_begin();
  GRETA_UNROLL
  for (u32 k = 0; k < BK; k += 16) {
    GRETA_UNROLL
    for (u32 i = 0; i < live; ++i) {
      const OperandPlace one = swapped ? place_b(i * 64, k) : place_a(i * 64, k);
      const OperandPlace other = swapped ? place_a(0, k) : place_b(0, k);
      if (add || k > 0) {
        multiply_async<one_along_k, other_along_k, true>(In(), sums[i], one, other);
      } else {
        multiply_async<one_along_k, other_along_k, false>(In(), sums[i], one, other);
      }
    }
  }
  close_products();
}
