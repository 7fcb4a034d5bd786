// The walk along K of warpgroups (INSTR=64; warpgroup_tile.hip). Of the STAGES buffers one is
// multiplied while copies for the others' K steps are under way.
#pragma once

#include "gemm/operands.hip"
#include "gemm/panel_loader.hip"
#include "gemm/tile_order.hip"
#include "gemm/warpgroup_tile.hip"

#if VA != 8 || VB != 8 || PAD != 0 || ASYNC != 1 || FRAGMENTS != 1 || STAGES < 3
#error "INSTR=64 needs VA=8 VB=8 PAD=0 ASYNC=1 FRAGMENTS=1 and three STAGES"
#endif

#define MATRIX_SHARED GRETA_PANELS_SHARED

typedef PanelLoader<In, A_ALONG_K, BM> LoaderA;
typedef PanelLoader<In, B_ALONG_K, BN, GATED> LoaderB;

constexpr u32 stage_bytes = LoaderA::Tile::bytes + LoaderB::Tile::bytes;

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

  // Starts the products of a K step.
  static GRETA_DEVICE void multiply(const Parts& parts, u32 stage, Sums& sums) {
    multiply_tiles<LoaderA::Tile, LoaderB::Tile>(parts, stage * stage_bytes, sums);
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
    const Parts parts = warpgroup_parts<LoaderA::Tile, LoaderB::Tile>(shared);
    k_left = k_length;
    GRETA_UNROLL
    for (u32 s = 0; s < ahead; ++s) copy(s);
    arrive<int(ahead) - 1>();
    u32 stage = 0, free_stage = ahead, k = 0;
    do {  // of an empty slice, a step of zeros: a path around would copy the sums
      multiply(parts, stage, sums);
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
