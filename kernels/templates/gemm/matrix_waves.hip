// The walk along K of waves, which multiply WM x WN parts of the tile from their registers.
#pragma once

#include "gemm/matrix_whole_steps.hip"

// The workgroup's walk along K.
struct Pipeline : WholeSteps {
  u32 k_left;  // from the K step to be loaded next to the end
  u32 stage;   // that is multiplied

#if ASYNC
  // Starts the copies of one slot into a stage: zeros behind the last K step, which spares
  // branches.
  GRETA_DEVICE void copy(u32 slot, u32 to_stage) {
    GRETA_UNROLL
    for (u32 i = 0; i < LoaderA::units; ++i) {
      if (i * slots / copies == slot) a.copy(i, shared, a_start(to_stage), k_left);
    }
    GRETA_UNROLL
    for (u32 i = 0; i < LoaderB::units; ++i) {
      if ((LoaderA::units + i) * slots / copies == slot) {
        b.copy(i, shared, b_start(to_stage), k_left);
      }
    }
    if (slot + 1 == slots) next_step();
  }
#else
  // Starts loading the next K step into registers. Gives what was left of K, 0 behind the last
  // step.
  GRETA_DEVICE u32 fetch() {
    const u32 left = k_left;
    if (left > 0) {
      a.fetch(left);
      b.fetch(left);
      next_step();
    }
    return left;
  }
#endif

  GRETA_DEVICE void next_step() {
    a.base += a.step_bytes;
    b.base += b.step_bytes;
    k_left -= smaller(k_left, BK);
  }

  // The stage is complete when this returns, and seen by all. `fetched`: the last fetch()'s answer.
  GRETA_DEVICE void arrive(u32 fetched) {
#if ASYNC
    wait_for_copies<STAGES - 2, copies>();
#else
    if (STAGES == 1) block_barrier();  // the fragments of the step before were read
    if (fetched > 0) {
      if (fetched < BK) {
        a.clear_tail(fetched);
        b.clear_tail(fetched);
      }
      a.put(shared.bytes + a_start(stage));
      b.put(shared.bytes + b_start(stage));
    }
#endif
    block_barrier();
  }

  GRETA_DEVICE void begin() {
    stage = 0;
#if DIRECT
    direct.load(b_steps[0]);
#endif
#if ASYNC
    GRETA_UNROLL
    for (u32 s = 0; s + 1 < STAGES; ++s) {
      GRETA_UNROLL
      for (u32 slot = 0; slot < slots; ++slot) copy(slot, s);
      close_copies();
    }
    arrive(0);
#else
    arrive(fetch());
#endif
    if (FRAGMENTS == 2) {
      GRETA_UNROLL
      for (u32 i = 0; i < rows; ++i) read_fragments(0, 0, i);
    }
  }

  // Reads one of `rows` parts of the fragments.
  GRETA_DEVICE void read_fragments(u32 set, u32 depth, u32 part) {
    const Position wave = wave_position();
    GRETA_UNROLL
    for (u32 i = 0; i < rows; ++i) {
      if (i * rows / (rows + columns) != part) continue;
      a_fragments[set][i] = Core::load<Operand::a, LoaderA::tile_along_k, LoaderA::Tile>(
          shared, a_start(stage), wave.row + i * INSTR, depth * Core::depth);
    }
#if !DIRECT
    GRETA_UNROLL
    for (u32 j = 0; j < columns; ++j) {
      if ((rows + j) * rows / (rows + columns) != part) continue;
      b_fragments[set][j] = Core::load<Operand::b, LoaderB::tile_along_k, LoaderB::Tile>(
          shared, b_start(stage), wave.col + j * INSTR, depth * Core::depth);
    }
#endif
  }

  // With two sets of fragments, one is read while the other is multiplied, across K steps too.
  GRETA_DEVICE void walk(u32 k_length, Sums& sums) {
    k_left = k_length;
    begin();
    const u32 first = walk_whole(k_left / BK, sums) * BK;
    k_left -= first;
    for (u32 k = first; k < k_length; k += BK) {
      const u32 free_stage = stage == 0 ? STAGES - 1 : stage - 1;
      u32 fetched = 0;
      GRETA_UNROLL
      for (u32 depth = 0; depth < depths; ++depth) {
        if (FRAGMENTS == 2 && depth + 1 == depths) finish_step(fetched);
        GRETA_UNROLL
        for (u32 i = 0; FRAGMENTS == 1 && i < rows; ++i) read_fragments(0, depth, i);
#if !ASYNC
        if (depth == 0) fetched = fetch();
#endif
#if DIRECT
        if (depth == 0) direct.load(b_steps[1]);
#endif
        GRETA_UNROLL
        for (u32 i = 0; i < rows; ++i) {
          if (FRAGMENTS == 2) read_fragments((depth + 1) % 2, (depth + 1) % depths, i);
#if ASYNC
          if (depth < copying_depths) copy(depth * rows + i, free_stage);
#endif
          multiply_row(depth % FRAGMENTS, columns_of(0, depth), i, sums);
          keep_order();
        }
      }
      if (FRAGMENTS == 1) finish_step(fetched);
#if DIRECT
      DirectLoader::each([&](u32 depth, u32 j, u32 i) {
        b_steps[0][depth][j].chunk[i] = b_steps[1][depth][j].chunk[i];
      });
#endif
    }
#if ASYNC
    wait_for_copies<0, copies>();  // zeros from behind the last step
#endif
    block_barrier();  // shared memory may be used for something else
  }

  GRETA_DEVICE void finish_step(u32 fetched) {
#if ASYNC
    close_copies();
#endif
    stage = stage + 1 == STAGES ? 0 : stage + 1;
    arrive(fetched);
  }
};
