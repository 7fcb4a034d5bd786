// The walk along K of warpgroups (INSTR=64), which multiply WM x WN parts of the tile straight from
// shared memory, in products of 64 rows and WN columns; or where WM is less than 64, of 64 columns
// and WM rows, with the operands' roles swapped. Of the STAGES buffers one is multiplied while
// copies for the others' K steps are under way.
#pragma once

#include "gemm/operands.hip"
#include "gemm/panel_loader.hip"
#include "gemm/tile_order.hip"

#if VA != 8 || VB != 8 || PAD != 0 || ASYNC != 1 || FRAGMENTS != 1 || STAGES < 3
#error "INSTR=64 needs VA=8 VB=8 PAD=0 ASYNC=1 FRAGMENTS=1 and three STAGES"
#endif
#if BK % 64 != 0 || \
    (WM < 64 ? WM != BM || WN % 64 != 0 : WM % 64 != 0 || (WN != BN && WN % 64 != 0))
#error "INSTR=64 needs BK of 64 or 128, and parts of 64 rows or columns and of whole panels"
#endif

#define MATRIX_SHARED GRETA_PANELS_SHARED

typedef PanelLoader<In, A_ALONG_K, BM> LoaderA;
typedef PanelLoader<In, B_ALONG_K, BN> LoaderB;

constexpr u32 stage_bytes = LoaderA::Tile::bytes + LoaderB::Tile::bytes;

constexpr bool swapped = WM < INSTR;
constexpr u32 products = (swapped ? WN : WM) / INSTR;
typedef WarpgroupSums<(swapped ? WM : WN)> Sums[products];

// A wave has 16 of the 64 rows or columns of each product.
constexpr u32 pieces = products;
constexpr u32 piece_rows = swapped ? WM : INSTR / 4, piece_width = swapped ? INSTR / 4 : WN;

// Where the warpgroup's part of the tile starts.
GRETA_DEVICE Position warpgroup_position() {
  const u32 group = warpgroup_index();
  return {group / (BN / WN) * WM, group % (BN / WN) * WN};
}

// Where piece i of the wave's part starts in the tile.
GRETA_DEVICE Position piece_position(u32 i) {
  const Position group = warpgroup_position();
  const u32 first = i * INSTR + wave_index() % 4 * (INSTR / 4);
  return {group.row + (swapped ? 0 : first), group.col + (swapped ? first : 0)};
}

// `width` columns of piece i, from column `first` on, as rows `pitch` floats apart.
template <u32 width>
GRETA_DEVICE void store_piece(const Sums& sums, u32 i, u32 first, float* to, u32 pitch) {
  if constexpr (swapped) {
    store_turned_sums(sums[i], to, pitch);
  } else {
    store_sums<width>(sums[i], first, to, pitch);
  }
}
GRETA_DEVICE constexpr u32 sums_pitch(u32 width) { return width + 8; }

struct Pipeline {
  LoaderA a;
  LoaderB b;
  SharedMemory shared;
  u32 k_left;  // from the K step to be loaded next to the end

  static constexpr u32 ahead = STAGES - 1;  // K steps whose copies are under way

  // Starts copying the next K step: zeros behind the last one, which spares branches.
  GRETA_DEVICE void copy(u32 stage) {
    const u32 to = stage * stage_bytes;
    GRETA_UNROLL
    for (u32 i = 0; i < LoaderA::units; ++i) a.copy(i, shared, to, k_left);
    GRETA_UNROLL
    for (u32 i = 0; i < LoaderB::units; ++i) b.copy(i, shared, to + LoaderA::Tile::bytes, k_left);
    close_copies();
    a.next_step();
    b.next_step();
    k_left -= smaller(k_left, BK);
  }

  // The operands' parts of a stage, from row or column `span` of the tile and from k on.
  GRETA_DEVICE OperandPlace place_a(u32 stage, u32 span, u32 k) const {
    const u32 part = LoaderA::Tile::template part<A_ALONG_K>(span, k);
    return operand_place<LoaderA::Tile, A_ALONG_K>(shared, stage * stage_bytes + part);
  }
  GRETA_DEVICE OperandPlace place_b(u32 stage, u32 span, u32 k) const {
    const u32 part = LoaderB::Tile::template part<B_ALONG_K>(span, k);
    return operand_place<LoaderB::Tile, B_ALONG_K>(
        shared, stage * stage_bytes + LoaderA::Tile::bytes + part);
  }

  // Starts the products of a K step.
  GRETA_DEVICE void multiply(u32 stage, Sums& sums) const {
    const Position group = warpgroup_position();
    products_begin();
    GRETA_UNROLL
    for (u32 k = 0; k < BK; k += 16) {
      GRETA_UNROLL
      for (u32 i = 0; i < products; ++i) {
        if constexpr (swapped) {
          multiply_async<B_ALONG_K, A_ALONG_K, true>(
              In(), sums[i], place_b(stage, group.col + i * INSTR, k), place_a(stage, group.row, k));
        } else {
          multiply_async<A_ALONG_K, B_ALONG_K, true>(
              In(), sums[i], place_a(stage, group.row + i * INSTR, k), place_b(stage, group.col, k));
        }
      }
    }
    close_products();
  }

  // When this returns, all copies but those of the latest `pending` K steps are in shared memory,
  // where products can read them, and all products but those of the latest step are done: for every
  // warpgroup. Products are waited for last: what is before costs no time while they run.
  template <int pending>
  static GRETA_DEVICE void arrive() {
    wait_for_copies<pending, 0>();
    show_to_products();
    wait_for_products<1>();
    block_barrier();
  }

  GRETA_DEVICE void walk(u32 k_length, Sums& sums) {
    k_left = k_length;
    GRETA_UNROLL
    for (u32 s = 0; s < ahead; ++s) copy(s);
    arrive<int(ahead) - 1>();
    u32 stage = 0, free_stage = ahead, k = 0;
    do {  // of an empty slice, a step of zeros: a path around would copy the sums
      multiply(stage, sums);
      arrive<int(ahead) - 2>();  // so that the next step's products follow at once
      copy(free_stage);          // that of the step before
      stage = stage + 1 == STAGES ? 0 : stage + 1;
      free_stage = free_stage + 1 == STAGES ? 0 : free_stage + 1;
      k += BK;
    } while (k < k_length);
    finish_products(sums);
    wait_for_copies<0, 0>();  // zeros from behind the last step
    block_barrier();          // shared memory may be used for something else
  }
};
