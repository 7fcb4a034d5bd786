// How warpgroups multiply weights whose scales and zero points lie beside them, in groups (tma.hip). While
// matrix cores multiply one half of a group, or with ROUND of a step, threads make operands of the other one.
#pragma once

constexpr u32 groups_of_step = step / GROUP;
constexpr u32 half_fragments = ROUND ? step / 32 : GROUP / 32;

// Scales and zero points of a lane's lines, of the groups of a step.
struct StepScales {
  Scale scale[products][groups_of_step][2];
  u32 zero[products][groups_of_step][2];
};

// Groups past the last one have the scale 0, of mxfp4 the least one: zeros are copied in place of their weights.
GRETA_DEVICE StepScales load_scales(const Arguments& args, Tile tile, u32 step_index) {
  constexpr u32 implied_zero = FORMAT == 0 ? 8 : 128;
  const u32 groups = args.k / GROUP;
  StepScales scales;
  GRETA_UNROLL
  for (u32 product = 0; product < products; ++product) {
    GRETA_UNROLL
    for (u32 i = 0; i < groups_of_step * 2; ++i) {
      const u32 line = row_of_weights(args, tile, product, i % 2);
      const u32 group = step_index * groups_of_step + i / 2;
      const u64 at = u64(line) * groups + smaller(group, groups - 1);
      Scale scale = load_now(args.weights.scales + at);
#if FORMAT == 6
      if (group >= groups) scale = 0;
#else
      if (group >= groups) scale.bits = 0;
#endif
      scales.scale[product][i / 2][i % 2] = scale;
      scales.zero[product][i / 2][i % 2] = ZEROS ? load_byte_now(args.weights.zeros + at) : implied_zero;
    }
  }
  return scales;
}

typedef Fragment Half[half_fragments];

// What a lane reads weights by.
struct LaneWeights {
  const u8* line;  // of product 0, in the buffer of the box
  u32 swap;
};

GRETA_DEVICE LaneWeights lane_weights(const u8* shared, u32 box, u32 of_box) {
  const u8* const start = shared + lines_start + box * line_box;
  constexpr u32 chunks = step * 8 / box_weights;  // of a step
#if PANELS
  return {start + place_of_line(line_of_lane(0)) + place_of_chunk(of_box * chunks, 0), 0};
#else
  return {start + line_of_lane(0) * 128, (lane_index() / 4) ^ (of_box * chunks)};
#endif
}

#if ROUND
// Makes operands of one half of a step, of weights that are rounded.
GRETA_DEVICE void read_rounded(const LaneWeights& from, u32 product, u32 half, u32 selector,
                               const StepScales& scales, Half& fragments) {
  constexpr u32 count = GROUP < 64 ? GROUP / 16 : half_fragments;  // of one group
  GRETA_UNROLL
  for (u32 first = 0; first < half_fragments; first += count) {
    const u32 group = (half * half_fragments + first) * 16 / GROUP;
    PairZero zero[2];
    GRETA_UNROLL
    for (u32 i = 0; i < 2; ++i) zero[i] = pair_zero(scales.zero[product][group][i]);
    Fragment part[count];
    read_fragments<next_line>(from.line + product * (product_cols * box_line), half * half_fragments + first,
                              from.swap, selector, zero, part);
    GRETA_UNROLL
    for (u32 i = 0; i < count * 4; ++i) {
      fragments[first + i / 4][i % 4] =
          rounded(part[i / 4][i % 4], twice(scales.scale[product][group][i % 2]), negative_zeros);
    }
  }
}
#endif

// `pair`: of the group's zero points, which the first half leaves for the second one.
GRETA_DEVICE void read_half(const LaneWeights& from, u32 product, u32 group, u32 half, u32 selector,
                            const StepScales& scales, PairZero (&pair)[2], Half& fragments) {
  GRETA_UNROLL
  for (u32 i = 0; half == 0 && i < 2; ++i) pair[i] = pair_zero(scales.zero[product][group][i]);
  read_fragments<next_line>(from.line + product * (product_cols * box_line),
                            (group * 2 + half) * half_fragments, from.swap, selector, pair, fragments);
}

// Of a tile's first step, what is loaded before its turn.
typedef StepScales Ahead;

GRETA_DEVICE Ahead load_ahead(const Arguments& args, Tile tile, u32 first) {
  return load_scales(args, tile, first);
}

// Adds the products of a tile's steps, from step `first` on, whose scales are `scales`. These are those of the
// tile `after` it then.
#if ROUND
GRETA_DEVICE void consume(const Arguments& args, u8* memory, SharedMemory shared, Tile tile, Tile after,
                          u32 first, u32 steps, Rings& rings, Ahead& scales, Sums (&totals)[products]) {
  if (steps == 0) return;
  const u32 selector = selector_of_lane();
  Half half[2];
  RowsInUse rows(rings.rows);
  rings.lines.filled().wait(rings.lines.parity);
  LaneWeights lane = lane_weights(memory, rings.lines.index, 0);
  read_rounded(lane, 0, 0, selector, scales, half[0]);
  GRETA_NO_UNROLL
  for (u32 i = 0; i < steps; ++i) {
    const bool more = i + 1 < steps;
    StepScales later;
    const u32 start = rows.wait();
    GRETA_UNROLL
    for (u32 u = 0; u < 2 * products; ++u) {
      const u32 product = u % products, next = u + 1;
      start_products<false>(shared, start, u / products * (step / 2), half[u % 2], totals[product]);
      if (u == 0) later = load_scales(args, more ? tile : after, more ? first + i + 1 : first);
      wait_for_products<1>();
      if (u == 0) rows.release_earlier();
      if (next < 2 * products) {
        read_rounded(lane, next % products, next / products, selector, scales, half[next % 2]);
        continue;
      }
      const u32 of_box = (i + 1) % steps_of_box;
      if (of_box == 0 || !more) {
        rings.lines.release();
        rings.lines.next();
      }
      if (more) {
        if (of_box == 0) rings.lines.filled().wait(rings.lines.parity);
        lane = lane_weights(memory, rings.lines.index, of_box);
        read_rounded(lane, 0, 0, selector, later, half[0]);
      }
    }
    rows.next();
    scales = later;
  }
  rows.finish(totals);
}
#else
GRETA_DEVICE void consume(const Arguments& args, u8* memory, SharedMemory shared, Tile tile, Tile after,
                          u32 first, u32 steps, Rings& rings, Ahead& scales, Sums (&totals)[products]) {
  if (steps == 0) return;
  const u32 selector = selector_of_lane();
  PairZero pair[2];
  Half half[2];
  Sums part;
  rings.lines.filled().wait(rings.lines.parity);
  LaneWeights lane = lane_weights(memory, rings.lines.index, 0);
  read_half(lane, 0, 0, 0, selector, scales, pair, half[0]);
  GRETA_NO_UNROLL
  for (u32 i = 0; i < steps; ++i) {
    const bool more = i + 1 < steps;
    StepScales later;
    rings.rows.filled().wait(rings.rows.parity);
    const u32 start = rings.rows.index * TileA::bytes;
    GRETA_UNROLL
    for (u32 u = 0; u < groups_of_step * products; ++u) {
      const u32 group = u / products, product = u % products, next = u + 1;
      start_products<true>(shared, start, group * GROUP, half[0], part);
      if (u == 0) later = load_scales(args, more ? tile : after, more ? first + i + 1 : first);
      read_half(lane, product, group, 1, selector, scales, pair, half[1]);
      start_products<false>(shared, start, group * GROUP + GROUP / 2, half[1], part);
      wait_for_products<1>();
      if (next < groups_of_step * products) {
        read_half(lane, next % products, next / products, 0, selector, scales, pair, half[0]);
      } else {
        const u32 of_box = (i + 1) % steps_of_box;
        if (of_box == 0 || !more) {
          rings.lines.release();
          rings.lines.next();
        }
        if (more) {
          if (of_box == 0) rings.lines.filled().wait(rings.lines.parity);
          lane = lane_weights(memory, rings.lines.index, of_box);
          read_half(lane, 0, 0, 0, selector, later, pair, half[0]);
        }
      }
      wait_for_products<0>();
      claim_sums(part);
      const Scale(&scale)[2] = scales.scale[product][group];
      add_scaled(totals[product], part, {scale_value(scale[0]), scale_value(scale[1])});
    }
    rings.rows.release();
    rings.rows.next();
    scales = later;
  }
}
#endif
