// The walk along K while the step to be loaded is a whole one, on AMD GPUs. As many steps as there
// are stages are walked at a time: they name their stages, so addresses are registers of the first
// step and offsets of instructions. A step is one of:
//
//   INTERLEAVE=0  accesses to memory and products in the order of the source
//   INTERLEAVE=n  the compiler puts n matrix instructions between two accesses; 0 if it can't
//   PINGPONG=1    half of the waves multiply while the other half reads and loads
#pragma once

#include "gemm/fragment_places.hip"
#include "gemm/matrix_parts.hip"

#if defined(GRETA_MATRIX_MMA)
struct WholeSteps : Operands {
  GRETA_DEVICE u32 walk_whole(u32, Sums&) { return 0; }
};
#else

#if INTERLEAVE < 0 || PINGPONG < 0 || PINGPONG > 1 || (PINGPONG && INTERLEAVE)
#error "PINGPONG is 0 or 1, and then INTERLEAVE 0"
#endif
#if PINGPONG && (FRAGMENTS != 1 || STAGES < 2 || THREADS / WAVE % 8 != 0)
#error "PINGPONG needs 8 waves or a multiple, FRAGMENTS=1 and two stages"
#endif

struct WholeSteps : Operands {
  static constexpr u32 turn = STAGES == 1 ? 2 : STAGES;
  FragmentPlaces<LoaderA::tile_along_k, In, INSTR, LoaderA::Tile, rows, STAGES, a_stride> a_places;
#if DIRECT
  NoPlaces b_places;
#else
  FragmentPlaces<LoaderB::tile_along_k, In, INSTR, LoaderB::Tile, columns, STAGES, b_stride>
      b_places;
#endif

  // Walks at most so many steps. Returns how many it walked.
  GRETA_DEVICE u32 walk_whole(u32 steps, Sums& sums) {
    const u32 turns = kept_by_all(steps / turn);
    if (turns == 0) return 0;
    const Position wave = wave_position();
    a.go_whole();
    b.go_whole();
    a_places.set(0, wave.row);
    b_places.set(b_first, wave.col);
#if DIRECT
    direct.go_whole();
#endif
    // From here on the second half of the waves is one barrier behind.
    const bool behind = wave_index() >= THREADS / WAVE / 2;
    if (PINGPONG && behind) loose_barrier();
    for (u32 t = 0; t < turns; ++t) walk_turn<0>(sums);
    if (PINGPONG && !behind) loose_barrier();
    a.stop_whole();
    b.stop_whole();
#if DIRECT
    direct.stop_whole(turns * turn);
#endif
    return turns * turn;
  }

 private:
  template <u32 step>
  GRETA_DEVICE void walk_turn(Sums& sums) {
    if constexpr (step < turn) {
      if constexpr (PINGPONG) {
        take_turns<step % STAGES>(sums);
      } else if constexpr (INTERLEAVE > 0 && GRETA_INTERLEAVES) {
        interleave_step<step>(sums);
      } else {
        walk_step<step>(sums);
      }
      walk_turn<step + 1>(sums);
    }
  }

  template <u32 step>
  GRETA_DEVICE void walk_step(Sums& sums) {
    constexpr u32 from = step % STAGES, next = (from + 1) % STAGES;
    GRETA_UNROLL
    for (u32 depth = 0; depth < depths; ++depth) {
      const bool last = depth + 1 == depths;
      if (FRAGMENTS == 2 && last) arrive_whole(next);
      if (FRAGMENTS == 1) {
        GRETA_UNROLL
        for (u32 j = 0; j < columns; ++j) read_b(0, from, depth, j);
        read_a(0, from, depth, 0);
      }
#if !ASYNC
      if (depth == 0) fetch_whole();
#endif
      if (depth == 0) load_direct(step + 1);
      keep_order();
      if (FRAGMENTS == 2) wait_for_fragments<0>();
      if (PRIORITY == 1) set_priority<1>();
      GRETA_UNROLL
      for (u32 i = 0; i < rows; ++i) {
        if (FRAGMENTS == 2) {
          read_places((depth + 1) % 2, last ? next : from, last ? 0 : depth + 1, i);
        } else if (i + 1 < rows) {
          read_a(0, from, depth, i + 1);
        }
#if ASYNC
        if (depth < copying_depths) copy_whole(depth * rows + i, (from + STAGES - 1) % STAGES);
#endif
        multiply_row(depth % FRAGMENTS, columns_of(step, depth), i, sums);
        keep_order();
      }
      if (PRIORITY == 1) set_priority<0>();
    }
    if (FRAGMENTS == 1) arrive_whole(next);
  }

#if DIRECT
  static constexpr u32 direct_loads = DirectLoader::loads;
#else
  static constexpr u32 direct_loads = 0;
#endif
  // Accesses to memory of a depth in interleave_step().
  static constexpr u32 fragment_reads =
      rows * decltype(a_places)::reads + columns * decltype(b_places)::reads;
  static constexpr u32 loads = (ASYNC ? 0 : LoaderA::loads + LoaderB::loads) + direct_loads;
  static constexpr u32 puts = ASYNC || STAGES == 1 ? 0 : LoaderA::puts + LoaderB::puts;
  // The depth in which the next stage is written: before that of the barrier.
  static constexpr u32 putting_depth = depths - FRAGMENTS;

  // All accesses of a depth come before its products in the source.
  template <u32 step>
  GRETA_DEVICE void interleave_step(Sums& sums) {
    interleave_depth<step, 0>(sums);
    if (FRAGMENTS == 1) arrive_interleaved((step + 1) % STAGES);
  }
  template <u32 step, u32 depth>
  GRETA_DEVICE void interleave_depth(Sums& sums) {
    constexpr u32 from = step % STAGES;
    constexpr bool last = depth + 1 == depths, across = FRAGMENTS == 2 && last;
    constexpr u32 next = (from + 1) % STAGES, stage = across ? next : from;
    constexpr u32 read = (depth + FRAGMENTS - 1) % depths, set = read % FRAGMENTS;
    if (across) arrive_interleaved(next);
    keep_order();
    if (PRIORITY == 1) set_priority<1>();
    read_a(set, stage, read, 0);
    GRETA_UNROLL
    for (u32 j = 0; j < columns; ++j) read_b(set, stage, read, j);
    GRETA_UNROLL
    for (u32 i = 0; i < rows; ++i) {
      if (i > 0) read_a(set, stage, read, i);
#if ASYNC
      if (depth < copying_depths) copy_whole(depth * rows + i, (from + STAGES - 1) % STAGES);
#endif
    }
#if !ASYNC
    if (depth == 0) fetch_whole();
    if (puts > 0 && depth == putting_depth) put_whole(next);
#endif
    if (depth == 0) load_direct(step + 1);
    multiply_anywhere(depth % FRAGMENTS, columns_of(step, depth), sums);
    // The first product needs two fragments. Two more reads are on their way then.
    constexpr u32 first = decltype(a_places)::reads + decltype(b_places)::reads;
    constexpr u32 ahead = FRAGMENTS == 1 ? smaller(first + 2, fragment_reads) : 0;
    constexpr u32 early = fragment_reads + (depth == 0 ? loads : 0) - ahead;
    interleave<ahead, early, depth == putting_depth ? puts : 0, INTERLEAVE,
               rows * columns * Core::steps>();
    keep_here(sums);
    if (PRIORITY == 1) set_priority<0>();
    keep_order();
    if constexpr (!last) interleave_depth<step, depth + 1>(sums);
  }
  GRETA_DEVICE void arrive_interleaved(u32 to_stage) {
    if (puts > 0) {
      shared_barrier();
    } else {
      arrive_whole(to_stage);
    }
  }
  GRETA_DEVICE void multiply_anywhere(u32 set, const Columns& b, Sums& sums) const {
    GRETA_UNROLL
    for (u32 i = 0; i < rows; ++i) {
      GRETA_UNROLL
      for (u32 l = 0; l < columns; ++l) {
        const u32 j = i % 2 == 0 ? l : columns - 1 - l;
        Core::multiply_anywhere(sums[i][j], a_fragments[set][i], b[j]);
      }
    }
  }
  static GRETA_DEVICE void keep_here(Sums& sums) {
    GRETA_UNROLL
    for (u32 i = 0; i < rows; ++i) {
      GRETA_UNROLL
      for (u32 j = 0; j < columns; ++j) Core::keep_here(sums[i][j]);
    }
  }

  // A step has two phases or more, of a depth each or of half of the rows. In each phase a wave
  // reads its fragments and loads, then meets the others, multiplies, and meets them again. One
  // half of the waves is a barrier behind, so of two waves on a SIMD one multiplies at a time.
  //
  // What a wave reads it has when it arrives, so that a stage is free for the wave ahead when the
  // next step begins. What it loads for that step is there at the end of its last reads.
  static constexpr u32 phases = depths > 1 ? depths : 2;
  static constexpr u32 phase_rows = depths > 1 ? rows : (rows + 1) / 2;

  template <u32 from>
  GRETA_DEVICE void take_turns(Sums& sums) {
    constexpr u32 next = (from + 1) % STAGES;
    GRETA_UNROLL
    for (u32 phase = 0; phase < phases; ++phase) {
      const u32 depth = depths > 1 ? phase : 0, first = depths > 1 ? 0 : phase * phase_rows;
      const u32 end = smaller(first + phase_rows, rows);
      GRETA_UNROLL
      for (u32 j = 0; (depths > 1 || phase == 0) && j < columns; ++j) read_b(0, from, depth, j);
      GRETA_UNROLL
      for (u32 i = first; i < end; ++i) read_a(0, from, depth, i);
#if ASYNC
      GRETA_UNROLL
      for (u32 i = 0; phase < copying_depths && i < rows; ++i) {
        copy_whole(phase * rows + i, (from + STAGES - 1) % STAGES);
      }
      if (phase + 1 == phases) await_copies();
#else
      if (phase == 0) fetch_whole();
      if (phase + 1 == phases) {
        wait_for_loads();
        put_whole(next);
      }
#endif
      loose_barrier();
      keep_order();
      if (PRIORITY == 1) set_priority<1>();
      GRETA_UNROLL
      for (u32 i = first; i < end; ++i) multiply_row(0, columns_of(0, 0), i, sums);
      if (PRIORITY == 1) set_priority<0>();
      keep_order();
      loose_barrier();
    }
  }

#if ASYNC
  GRETA_DEVICE void copy_whole(u32 slot, u32 to_stage) {
    constexpr u32 groups = LoaderA::groups + LoaderB::groups;
    GRETA_UNROLL
    for (u32 g = 0; g < LoaderA::groups; ++g) {
      if (g * slots / groups == slot) a.copy_whole(g, shared, a_start(to_stage));
    }
    GRETA_UNROLL
    for (u32 g = 0; g < LoaderB::groups; ++g) {
      if ((LoaderA::groups + g) * slots / groups == slot) {
        b.copy_whole(g, shared, b_start(to_stage));
      }
    }
    if (slot + 1 < slots) return;
    a.next_whole();
    b.next_whole();
  }
  GRETA_DEVICE void await_copies() {
    close_copies();
    wait_for_copies<STAGES - 2, copies>();
  }
#else
  GRETA_DEVICE void fetch_whole() {
    a.fetch_whole();
    b.fetch_whole();
    a.next_whole();
    b.next_whole();
  }
  GRETA_DEVICE void put_whole(u32 to_stage) {
    a.put_whole(shared.bytes + a_start(to_stage));
    b.put_whole(shared.bytes + b_start(to_stage));
  }
#endif

  // The stage is complete when this returns, and seen by all.
  GRETA_DEVICE void arrive_whole(u32 to_stage) {
#if ASYNC
    await_copies();
#else
    if (STAGES == 1) shared_barrier();
    if (!DIRECT) wait_for_loads();  // else B's may stay under way
    put_whole(to_stage);
#endif
    shared_barrier();
  }

  GRETA_DEVICE void read_a(u32 set, u32 from, u32 depth, u32 i) {
    a_fragments[set][i] = a_places.load(shared, from, i, depth);
  }
#if DIRECT
  GRETA_DEVICE void read_b(u32, u32, u32, u32) {}
  GRETA_DEVICE void load_direct(u32 step) { direct.load_whole(b_steps[step % 2]); }
#else
  GRETA_DEVICE void read_b(u32 set, u32 from, u32 depth, u32 j) {
    b_fragments[set][j] = b_places.load(shared, from, j, depth);
  }
  GRETA_DEVICE void load_direct(u32) {}
#endif
  // The fragments of a depth ahead: those of B first, all before the last row of products.
  GRETA_DEVICE void read_places(u32 set, u32 from, u32 depth, u32 part) {
    constexpr u32 parts = rows > 1 ? rows - 1 : 1;
    GRETA_UNROLL
    for (u32 j = 0; j < columns; ++j) {
      if (j * parts / (rows + columns) == part) read_b(set, from, depth, j);
    }
    GRETA_UNROLL
    for (u32 i = 0; i < rows; ++i) {
      if ((columns + i) * parts / (rows + columns) == part) read_a(set, from, depth, i);
    }
  }
};
#endif
