// How warpgroups multiply weights whose scales and zero points lie beside them, in groups (tma.hip). While
// matrix cores multiply one piece of a group, or with ROUND of a step, threads make operands of the next one.
#pragma once

#include "quantized_gemm/tma_scales.hip"

// Products of a piece are started together. Threads make few operands at once, so that matrix cores seldom wait.
constexpr u32 most_fragments = ROUND ? 4 : 2;
constexpr u32 piece_fragments = GROUP / 32 < most_fragments && !ROUND ? GROUP / 32 : most_fragments;
constexpr u32 step_fragments = step / 16;
typedef Fragment Piece[piece_fragments];
typedef StoredFragments<piece_fragments> StoredPiece;

// What a lane reads weights of a tile by.
struct LaneWeights {
  const u8* memory;
  u32 own, selector;
  u32 line;  // of product 0, in the buffer of the box
  u32 none;  // 0, which the compiler does not know, so that it keeps constants in registers

  GRETA_DEVICE LaneWeights(const Arguments& args, const u8* shared)
      : memory(shared), own(lines_start + place_of_line(line_of_lane(0))), selector(selector_of_lane()),
        none(args.k % 16) {}

  // Waits for a box.
  GRETA_DEVICE void enter_box(const Rings& rings) {
    rings.lines.filled().wait(rings.lines.parity);
    line = own + rings.lines.buffer() * line_box;
  }
  // `first`: of the box's fragments.
  template <u32 count>
  GRETA_DEVICE void load(u32 product, u32 first, StoredFragments<count>& stored) const {
    load_fragments<next_line>(memory, line + product * (product_cols * box_line), first, stored);
  }
};

GRETA_DEVICE void zeros_of_group(const StepScales& scales, u32 product, u32 group, u32 none, PairZero (&zeros)[2]) {
  GRETA_UNROLL
  for (u32 i = 0; i < 2; ++i) zeros[i] = pair_zero(scales.zero(product, group, i), none);
}

GRETA_DEVICE void leave_box(Rings& rings) {
  rings.lines.release();
  rings.lines.next();
}

#if ROUND
// Makes operands of half a step, of weights that are rounded. `at`: the step's first fragment in its box.
GRETA_DEVICE void read_rounded(const LaneWeights& lane, u32 at, u32 product, u32 half, const StepScales& scales,
                               Piece& fragments) {
  constexpr u32 count = GROUP < 64 ? GROUP / 16 : piece_fragments;  // of one group
  GRETA_UNROLL
  for (u32 first = 0; first < piece_fragments; first += count) {
    const u32 of_step = half * piece_fragments + first, group = of_step * 16 / GROUP;
    PairZero zeros[2];
    zeros_of_group(scales, product, group, lane.none, zeros);
    StoredFragments<count> stored;
    lane.load(product, at + of_step, stored);
    Fragment part[count];
    make_fragments(stored, 0, lane.selector, zeros, part);
    GRETA_UNROLL
    for (u32 i = 0; i < count * 4; ++i) {
      fragments[first + i / 4][i % 4] =
          rounded(part[i / 4][i % 4], twice(scales.scale(product, group, i % 2)), negative_zeros);
    }
  }
}

// Adds the products of a tile's steps, from step `first` on, whose first scales are `ahead`. These are those of
// the tile `after` it then.
GRETA_DEVICE void consume(const Arguments& args, u8* memory, SharedMemory shared, Tile tile, Tile after,
                          u32 first, u32 steps, Rings& rings, Ahead& ahead, Sums (&totals)[products]) {
  if (steps == 0) return;
  Piece half[2];
  RowsInUse rows(rings.rows);
  LaneWeights lane(args, memory);
  lane.enter_box(rings);
  StepScales scales = ahead.take();
  read_rounded(lane, 0, 0, 0, scales, half[0]);
  GRETA_NO_UNROLL
  for (u32 i = 0; i < steps; ++i) {
    const bool more = i + 1 < steps;
    const u32 of_box = i % steps_of_box, next_of_box = (i + 1) % steps_of_box;
    const u32 start = rows.wait();
    GRETA_UNROLL
    for (u32 u = 0; u < 2 * products; ++u) {
      const u32 product = u % products, next = u + 1;
      start_products<false>(shared, start, u / products * (step / 2), half[u % 2], totals[product]);
      if (u == 0) {
        if (!more) ahead.cursor.go_to(args, after, first);
        ahead.load();
      }
      wait_for_products<1>();
      if (u == 0) rows.release_earlier();
      if (next < 2 * products) {
        read_rounded(lane, of_box * step_fragments, next % products, next / products, scales, half[next % 2]);
        continue;
      }
      if (next_of_box == 0 || !more) leave_box(rings);
      if (more) {
        if (next_of_box == 0) lane.enter_box(rings);
        scales = ahead.take();
        read_rounded(lane, next_of_box * step_fragments, 0, 0, scales, half[0]);
      }
    }
    rows.next();
  }
  rows.finish(totals);
}
#else
constexpr u32 pieces = GROUP / 16 / piece_fragments;  // of a group

// The operands of one piece after the other, each of which is loaded while those before it are made or multiplied.
struct Pieces {
  Piece made[2];
  StoredPiece stored;
  PairZero zeros[2];  // of the group
  LaneWeights lane;

  GRETA_DEVICE Pieces(const Arguments& args, const u8* shared) : lane(args, shared) {}

  // `at`: the step's first fragment in its box.
  GRETA_DEVICE void load(u32 at, u32 product, u32 group, u32 piece) {
    if (chunk_fragments > piece_fragments && piece % 2 != 0) return;  // in the same chunk as the piece before it
    lane.load(product, at + (group * pieces + piece) * piece_fragments, stored);
  }
  GRETA_DEVICE void make(u32 product, u32 group, u32 piece, const StepScales& scales) {
    if (piece == 0) zeros_of_group(scales, product, group, lane.none, zeros);
    make_fragments(stored, piece * piece_fragments, lane.selector, zeros, made[piece % 2]);
  }
  // Makes a group's first piece, and loads the second one.
  GRETA_DEVICE void begin_group(u32 at, u32 product, u32 group, const StepScales& scales) {
    make(product, group, 0, scales);
    load(at, product, group, 1);
  }
  // Starts a group's products, which have A from `start` on.
  GRETA_DEVICE void multiply(SharedMemory shared, u32 start, u32 at, u32 product, u32 group,
                             const StepScales& scales, Sums& sums) {
    start_products<true>(shared, start, group * GROUP, made[0], sums);
    GRETA_UNROLL
    for (u32 piece = 1; piece < pieces; ++piece) {
      if (piece > 1) wait_for_products<1>();
      make(product, group, piece, scales);
      if (piece + 1 < pieces) load(at, product, group, piece + 1);
      start_products<false>(shared, start, group * GROUP + piece * piece_fragments * 16, made[piece % 2], sums);
    }
  }
};

// The number of `steps` that are in a share's boxes.
GRETA_DEVICE u32 steps_of_share(u32 steps, u32 share) {
  constexpr u32 turn = SHARES * steps_of_box;
  const u32 before = share * steps_of_box, rest = steps % turn;
  return steps / turn * steps_of_box + (rest > before ? smaller(rest - before, steps_of_box) : 0);
}

// Adds the products of a tile's steps, from step `first` on, that are in the share's boxes; its first scales are
// `ahead`. These are those of the tile `after` it then.
GRETA_DEVICE void consume(const Arguments& args, u8* memory, SharedMemory shared, Tile tile, Tile after,
                          u32 first, u32 steps, Rings& rings, Ahead& ahead, Sums (&totals)[products]) {
  constexpr u32 units = groups_of_step * products;
  u32 left = steps_of_share(steps, share_of_wave());
  if (left == 0) return;
  // What the compiler does not know: it moves nothing out of the branch, behind the wait for products.
  const bool always = args.n != 0;
  Pieces all(args, memory);
  Sums part;
  bool filled = false;
  all.lane.enter_box(rings);
  all.load(0, 0, 0, 0);
  StepScales scales = ahead.take();
  all.begin_group(0, 0, 0, scales);
  GRETA_NO_UNROLL
  for (;;) {
    GRETA_UNROLL
    for (u32 of_box = 0; of_box < steps_of_box; ++of_box) {
      const u32 at = of_box * step_fragments;
      const bool last = --left == 0, leaves = of_box + 1 == steps_of_box;
      if (!filled) rings.rows.filled().wait(rings.rows.parity);
      const u32 start = rings.rows.buffer() * TileA::bytes;
      GRETA_UNROLL
      for (u32 u = 0; u < units; ++u) {
        const u32 group = u / products, product = u % products, next = u + 1;
        all.multiply(shared, start, at, product, group, scales, part);
        const float scale[2] = {scale_value(scales.scale(product, group, 0)),
                                scale_value(scales.scale(product, group, 1))};
        if (u == 0) {
          if (last) ahead.cursor.go_to(args, after, first);
          if (SHARES > 1 && leaves && !last) ahead.cursor.skip((SHARES - 1) * steps_of_box);
          ahead.load();
        }
        if (next < units) {
          all.load(at, next % products, next / products, 0);
          wait_for_products<1>();
          if (always) all.begin_group(at, next % products, next / products, scales);
        } else {
          if (leaves || last) leave_box(rings);
          if (!last) {
            if (leaves) all.lane.enter_box(rings);
            const u32 at_next = leaves ? 0 : at + step_fragments;
            all.load(at_next, 0, 0, 0);
            wait_for_products<1>();
            scales = ahead.take();
            all.begin_group(at_next, 0, 0, scales);
          }
        }
        wait_for_products<0>();
        claim_sums(part);
        if (next == units) {
          rings.rows.release();
          rings.rows.next();
          filled = !last && rings.rows.filled().ended(rings.rows.parity);
        }
        add_scaled(totals[product], part, scale);
      }
      if (last) return;
    }
  }
}
#endif
