// The walk along K of waves, which multiply WM x WN parts of the tile from their registers.
#pragma once

#include "gemm/fragment_places.hip"
#include "gemm/matrix_loader.hip"
#include "gemm/operands.hip"
#include "gemm/tile_order.hip"

#if FRAGMENTS < 1 || FRAGMENTS > 2 || STAGES < 1 || (ASYNC ? STAGES < 2 : STAGES > 2)
#error "STAGES is 1 or 2, with ASYNC at least 2; FRAGMENTS is 1 or 2"
#endif

#if !defined(PRIORITY)
#define PRIORITY 0
#endif

#define MATRIX_SHARED GRETA_DYNAMIC_SHARED

typedef MatrixCore<In, INSTR> Core;
typedef OperandLoader<In, A_ALONG_K, BM, VA> LoaderA;
typedef OperandLoader<In, B_ALONG_K, BN, VB, GATED> LoaderB;

static_assert(!ASYNC || (GRETA_ASYNC_COPY && !LoaderA::turned && !LoaderB::turned),
              "ASYNC needs asynchronous copies, and tiles that are not turned on the way");
static_assert(!ASYNC || PAD == 0, "the lanes of a wave write one behind the other");

// Products of a wave in m, in n, and along a K step.
constexpr u32 rows = WM / INSTR, columns = WN / INSTR, depths = BK / Core::depth;
static_assert(BK % Core::depth == 0 && (FRAGMENTS == 1 || depths % 2 == 0),
              "BK is a multiple of the products' depth; two sets of fragments take turns");

constexpr u32 stage_bytes = LoaderA::Tile::bytes + LoaderB::Tile::bytes;

// Where the operands' parts of a stage start. Where the offsets of instructions reach them, all of
// A comes first, so that one register reaches as many stages as possible.
#if defined(GRETA_MATRIX_MMA)
constexpr u32 a_stride = stage_bytes, b_stride = stage_bytes, b_first = LoaderA::Tile::bytes;
#else
constexpr u32 a_stride = LoaderA::Tile::bytes, b_stride = LoaderB::Tile::bytes;
constexpr u32 b_first = STAGES * a_stride;
#endif
GRETA_DEVICE constexpr u32 a_start(u32 stage) {
  return stage * a_stride;
}
GRETA_DEVICE constexpr u32 b_start(u32 stage) {
  return b_first + stage * b_stride;
}

// Where the wave's part of the tile starts.
GRETA_DEVICE Position wave_position() {
  const u32 wave = wave_index();
  return {wave / (BN / WN) * WM, wave % (BN / WN) * WN};
}

typedef Core::Sums Sums[rows][columns];

// A wave's sums are handed out in pieces of a product's rows.
constexpr u32 pieces = rows, piece_rows = INSTR, piece_width = WN;

// Where piece i of the wave's part starts in the tile.
GRETA_DEVICE Position piece_position(u32 i) {
  const Position wave = wave_position();
  return {wave.row + i * INSTR, wave.col};
}

// `width` columns of piece i, from column `first` on, as rows `pitch` floats apart.
template <u32 width>
GRETA_DEVICE void store_piece(const Sums& sums, u32 i, u32 first, float* to, u32 pitch) {
  GRETA_UNROLL
  for (u32 l = 0; l < width; l += INSTR) Core::store(sums[i][(first + l) / INSTR], to + l, pitch);
}
GRETA_DEVICE constexpr u32 sums_pitch(u32 width) {
  return Core::pitch(width);
}

// The workgroup's walk along K.
struct Pipeline {
  LoaderA a;
  LoaderB b;
  SharedMemory shared;
  u32 k_left;  // from the K step to be loaded next to the end
  u32 stage;   // that is multiplied
  Core::Fragment a_fragments[FRAGMENTS][rows], b_fragments[FRAGMENTS][columns];

  // Copies of the next K step are spread over the products of this one, so that neither stands in
  // the other's way; with two sets of fragments, all are under way before the last products.
  static constexpr u32 copies = LoaderA::units + LoaderB::units;
  static constexpr u32 copying_depths = depths > 1 ? depths - 1 : 1;
  static constexpr u32 slots = copying_depths * rows;

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
    GRETA_UNROLL
    for (u32 j = 0; j < columns; ++j) {
      if ((rows + j) * rows / (rows + columns) != part) continue;
      b_fragments[set][j] = Core::load<Operand::b, LoaderB::tile_along_k, LoaderB::Tile>(
          shared, b_start(stage), wave.col + j * INSTR, depth * Core::depth);
    }
  }

  GRETA_DEVICE void multiply_row(u32 set, u32 i, Sums& sums) const {
    GRETA_UNROLL
    for (u32 l = 0; l < columns; ++l) {
      const u32 j = i % 2 == 0 ? l : columns - 1 - l;  // to and fro: neighbours share B
      Core::multiply(sums[i][j], a_fragments[set][i], b_fragments[set][j]);
    }
  }

  // With two sets of fragments, one is read while the other is multiplied, across K steps too.
  GRETA_DEVICE void walk(u32 k_length, Sums& sums) {
    k_left = k_length;
    begin();
#if defined(GRETA_MATRIX_MMA)
    const u32 first = 0;
#else
    const u32 first = walk_whole(sums);
#endif
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
        GRETA_UNROLL
        for (u32 i = 0; i < rows; ++i) {
          if (FRAGMENTS == 2) read_fragments((depth + 1) % 2, (depth + 1) % depths, i);
#if ASYNC
          if (depth < copying_depths) copy(depth * rows + i, free_stage);
#endif
          multiply_row(depth % FRAGMENTS, i, sums);
          keep_order();
        }
      }
      if (FRAGMENTS == 1) finish_step(fetched);
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

#if !defined(GRETA_MATRIX_MMA)
  // While the step to be loaded is a whole one, `turn` steps are walked at a time: they name their
  // stages, so addresses are registers of the first step and offsets of instructions.
  static constexpr u32 turn = STAGES == 1 ? 2 : STAGES;
  FragmentPlaces<LoaderA::tile_along_k, In, INSTR, LoaderA::Tile, rows, STAGES, a_stride> a_places;
  FragmentPlaces<LoaderB::tile_along_k, In, INSTR, LoaderB::Tile, columns, STAGES, b_stride>
      b_places;

  // Returns how far along K it came.
  GRETA_DEVICE u32 walk_whole(Sums& sums) {
    const u32 turns = kept_by_all(k_left / BK / turn);
    if (turns == 0) return 0;
    const Position wave = wave_position();
    a.go_whole();
    b.go_whole();
    a_places.set(0, wave.row);
    b_places.set(b_first, wave.col);
    for (u32 t = 0; t < turns; ++t) walk_turn<0>(sums);
    a.stop_whole();
    b.stop_whole();
    k_left -= turns * turn * BK;
    return turns * turn * BK;
  }

  template <u32 step>
  GRETA_DEVICE void walk_turn(Sums& sums) {
    if constexpr (step < turn) {
      walk_step<step % STAGES>(sums);
      walk_turn<step + 1>(sums);
    }
  }

  template <u32 from>
  GRETA_DEVICE void walk_step(Sums& sums) {
    constexpr u32 next = (from + 1) % STAGES;
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
        multiply_row(depth % FRAGMENTS, i, sums);
        keep_order();
      }
      if (PRIORITY == 1) set_priority<0>();
    }
    if (FRAGMENTS == 1) arrive_whole(next);
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
#else
  GRETA_DEVICE void fetch_whole() {
    a.fetch_whole();
    b.fetch_whole();
    a.next_whole();
    b.next_whole();
  }
#endif

  // As arrive(), of a whole step.
  GRETA_DEVICE void arrive_whole(u32 to_stage) {
#if ASYNC
    close_copies();
    wait_for_copies<STAGES - 2, copies>();
#else
    if (STAGES == 1) shared_barrier();
    wait_for_loads();
    a.put_whole(shared.bytes + a_start(to_stage));
    b.put_whole(shared.bytes + b_start(to_stage));
#endif
    shared_barrier();
  }

  GRETA_DEVICE void read_a(u32 set, u32 from, u32 depth, u32 i) {
    a_fragments[set][i] = a_places.load(shared, from, i, depth);
  }
  GRETA_DEVICE void read_b(u32 set, u32 from, u32 depth, u32 j) {
    b_fragments[set][j] = b_places.load(shared, from, j, depth);
  }
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
#endif
};
