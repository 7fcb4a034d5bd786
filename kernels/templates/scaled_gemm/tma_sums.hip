// How warpgroups of tma.hip, which includes this, multiply the steps of a tile and add up their products.
//
// Matrix cores add fp8 with fewer bits than f32 has, and scales of blocks change with each step. In both cases
// threads add the sums of a step (PROMOTED). Otherwise all of them stay in the matrix cores' sums.
#pragma once

#define PROMOTED (FORMAT != 4 || SCALES == 2)

#if SUMS < 1 || SUMS > 2 || (SUMS == 2 && (!PROMOTED || BM != GROUPS * 64))
#error "SUMS is 1 or 2, and the latter needs sums that threads add, and BM = 64 GROUPS"
#endif

typedef ByteSums<BN, Number> Sums;

// The sums of a warpgroup's part of a tile.
#if PROMOTED
typedef float Total;
struct Totals {
  float eight[products][BN / 8][4];

  GRETA_DEVICE Total (&of(u32 product, u32 c))[4] { return eight[product][c]; }
};
#else
typedef Number Total;
struct Totals {
  Sums sums[products];

  GRETA_DEVICE Total (&of(u32 product, u32 c))[4] { return sums[product].eight[c]; }
};
#endif

// With STAGGER: a warpgroup waits for the one before it, and lets the next one begin. A tile has at least
// STAGES steps, so that nobody is two tiles ahead.
GRETA_DEVICE void wait_to_begin() {
  const u32 group = warpgroup_index();
  if (STAGGER && group > 0) partial_sync<2 * warpgroup_size>(1 + group);
}
GRETA_DEVICE void let_next_begin() {
  const u32 group = warpgroup_index();
  if (STAGGER && group + 1 < GROUPS) partial_arrive<2 * warpgroup_size>(2 + group);
}

// Where the warpgroup's part of the operands is if their stage starts with shared memory.
struct Parts {
  OperandPlace a, b;

  explicit GRETA_DEVICE Parts(SharedMemory shared)
      : a(byte_place<TileA>(shared, 0, warpgroup_index() * products * 64, 0)),
        b(byte_place<TileB>(shared, TileA::bytes, 0, 0)) {}
};

// Starts the products of a stage with 64 rows of the warpgroup. `fresh`: sums begin with these.
template <bool fresh>
GRETA_DEVICE void start_products(const Parts& parts, u32 stage, u32 product, Sums& sums) {
  const OperandPlace first_a = further(parts.a, stage * stage_bytes);
  const OperandPlace first_b = further(parts.b, stage * stage_bytes);
  products_begin();
  GRETA_UNROLL
  for (u32 k = 0; k < step; k += 32) {
    const OperandPlace a = further(first_a, TileA::template part<true>(product * 64, k / 2));
    const OperandPlace b = further(first_b, TileB::template part<true>(0, k / 2));
    if (fresh && k == 0) {
      multiply_bytes<false>(Element(), sums, a, b);
    } else {
      multiply_bytes<true>(Element(), sums, a, b);
    }
  }
  close_products();
}

// The first row of a product's 64 that this lane has sums of; the other one is eight further.
GRETA_DEVICE u32 row_of_lane(const Tile& tile, u32 product) {
  return tile.row + (warpgroup_index() * products + product) * 64 + wave_index() % 4 * 16 +
         lane_index() / 4;
}

#if SCALES == 2
// Scales of a lane's rows, and of the two blocks of the tile's columns, for one step.
struct StepScales {
  float row[products][2], column[2];
};

// Scales of a tile's steps, four at a time. The four lanes that have the same rows load those of one step each:
// a load of a wave reads eight lines, which the path to the first-level cache, and so to shared memory, takes
// one by one. They are loaded four steps ahead.
struct TileScales {
  static constexpr u32 together = 4;

  ScalePair of_group;
  u32 rows[products][2], lines[2];
  u32 border;  // columns of the tile up to this one have the first block's scale
  u32 last;    // step
  StepScales now, next;

  GRETA_DEVICE TileScales(const ScalePair& all, const Tile& tile, u32 n, Steps steps)
      : of_group(scales_of_group(all, tile.group, n)), last(steps.end - 1) {
    GRETA_UNROLL
    for (u32 half = 0; half < 2; ++half) {
      GRETA_UNROLL
      for (u32 product = 0; product < products; ++product) {
        rows[product][half] = smaller(row_of_lane(tile, product) + half * 8, tile.last_row());
      }
      // With gates, the second block is that of ups.
      const u32 line = smaller(tile.col + (GATE ? 0 : half * scale_block), n - 1);
      lines[half] = GATE ? half * n + line : line;
    }
    border = GATE ? tile_columns : scale_block - tile.col % scale_block;
    load(steps.first);
  }

  // Goes on to the four steps from `first` on, which must be loaded, and loads those after them.
  GRETA_DEVICE void begin(u32 first) {
    now = next;
    load(first + together);
  }

  // Those of a step of the four.
  GRETA_DEVICE StepScales at(u32 place) const {
    const u32 lane = lane_index() / together * together + place;
    StepScales scales;
    GRETA_UNROLL
    for (u32 half = 0; half < 2; ++half) {
      GRETA_UNROLL
      for (u32 product = 0; product < products; ++product) {
        scales.row[product][half] = shuffle(now.row[product][half], lane);
      }
      scales.column[half] = shuffle(now.column[half], lane);
    }
    return scales;
  }

 private:
  GRETA_DEVICE void load(u32 first) {
    const u32 k = smaller(first + lane_index() % together, last) * step;
    GRETA_UNROLL
    for (u32 half = 0; half < 2; ++half) {
      GRETA_UNROLL
      for (u32 product = 0; product < products; ++product) {
        next.row[product][half] = of_group.of_a(rows[product][half], k);
      }
      next.column[half] = of_group.of_b(lines[half], k);
    }
  }
};
#else
struct StepScales {};
struct TileScales {
  static constexpr u32 together = SUMS;

  GRETA_DEVICE TileScales(const ScalePair&, const Tile&, u32, Steps) {}
  GRETA_DEVICE void begin(u32) {}
  GRETA_DEVICE StepScales at(u32) const { return {}; }
};
#endif

#if PROMOTED
GRETA_DEVICE void add_step(Totals& totals, const Sums& sums, u32 product, const StepScales& scales,
                           const TileScales& of_tile) {
  float(&total)[BN / 8][4] = totals.eight[product];
#if SCALES == 2
  float scale[2][2];  // of columns, of rows
  GRETA_UNROLL
  for (u32 i = 0; i < 4; ++i) scale[i / 2][i % 2] = scales.column[i / 2] * scales.row[product][i % 2];
  GRETA_UNROLL
  for (u32 c = 0; c < BN / 8; ++c) {
    // Blocks begin at multiples of eight columns of the tile, as BN is a multiple of eight.
    const bool second = c * 8 >= of_tile.border;
    GRETA_UNROLL
    for (u32 i = 0; i < 4; ++i) {
      const float factor = second ? scale[1][i / 2] : scale[0][i / 2];
      total[c][i] = multiply_add(float(sums.eight[c][i]), factor, total[c][i]);
    }
  }
#else
  GRETA_UNROLL
  for (u32 c = 0; c < BN / 8; ++c) {
    GRETA_UNROLL
    for (u32 i = 0; i < 4; ++i) total[c][i] += float(sums.eight[c][i]);
  }
#endif
}
#endif

#if PROMOTED && SUMS == 2
// Starts the products of the next step, and meanwhile adds the sums of the one before.
GRETA_DEVICE void change_steps(const Parts& parts, u32 rank, Stages& at, Sums& started, Sums& before,
                               Totals& totals, const StepScales& scales, const TileScales& of_tile) {
  const u32 stage = at.index;
  at.next();
  at.filled(at.index).wait(at.parity);
  start_products<true>(parts, at.index, 0, started);
  wait_for_products<1>();
  claim_byte_sums(before);
  at.release(stage, rank);
  add_step(totals, before, 0, scales, of_tile);
}

GRETA_DEVICE void finish_steps(u32 rank, Stages& at, Sums& last, Totals& totals, const StepScales& scales,
                               const TileScales& of_tile) {
  wait_for_products<0>();
  claim_byte_sums(last);
  at.release(at.index, rank);
  at.next();
  add_step(totals, last, 0, scales, of_tile);
}

GRETA_DEVICE void consume(const Arguments& args, SharedMemory shared, const Tile& tile, Steps steps,
                          u32 rank, Stages& at, Totals& totals) {
  const Parts parts(shared);
  TileScales of_tile(args.scales, tile, args.n, steps);
  Sums even, odd;
  at.filled(at.index).wait(at.parity);
  start_products<true>(parts, at.index, 0, even);
  let_next_begin();
  GRETA_NO_UNROLL
  for (u32 first = steps.first;; first += TileScales::together) {
    of_tile.begin(first);
    GRETA_UNROLL
    for (u32 place = 0; place < TileScales::together; place += 2) {
      const StepScales of_even = of_tile.at(place);
      if (first + place + 1 == steps.end) {
        finish_steps(rank, at, even, totals, of_even, of_tile);
        return;
      }
      change_steps(parts, rank, at, odd, even, totals, of_even, of_tile);
      const StepScales of_odd = of_tile.at(place + 1);
      if (first + place + 2 == steps.end) {
        finish_steps(rank, at, odd, totals, of_odd, of_tile);
        return;
      }
      change_steps(parts, rank, at, even, odd, totals, of_odd, of_tile);
    }
  }
}
#elif PROMOTED
template <u32 place>
GRETA_DEVICE void add_products(const Parts& parts, u32 rank, Stages& at, Totals& totals,
                               const TileScales& of_tile, bool begins) {
  const StepScales scales = of_tile.at(place);
  Sums sums;
  at.filled(at.index).wait(at.parity);
  GRETA_UNROLL
  for (u32 product = 0; product < products; ++product) {
    start_products<true>(parts, at.index, product, sums);
    wait_for_products<0>();
    claim_byte_sums(sums);
    if (begins && product == 0) let_next_begin();
    if (product + 1 == products) at.release(at.index, rank);
    add_step(totals, sums, product, scales, of_tile);
  }
  at.next();
}

GRETA_DEVICE void consume(const Arguments& args, SharedMemory shared, const Tile& tile, Steps steps,
                          u32 rank, Stages& at, Totals& totals) {
  const Parts parts(shared);
  TileScales of_tile(args.scales, tile, args.n, steps);
  GRETA_NO_UNROLL
  for (u32 first = steps.first; first < steps.end; first += TileScales::together) {
    const u32 left = steps.end - first;
    of_tile.begin(first);
    add_products<0>(parts, rank, at, totals, of_tile, first == steps.first);
    if constexpr (TileScales::together == 4) {
      if (left > 1) add_products<1>(parts, rank, at, totals, of_tile, false);
      if (left > 2) add_products<2>(parts, rank, at, totals, of_tile, false);
      if (left > 3) add_products<3>(parts, rank, at, totals, of_tile, false);
    }
  }
}
#else
// A buffer is released when the next one's products have been started.
GRETA_DEVICE void consume(const Arguments&, SharedMemory shared, const Tile&, Steps steps, u32 rank,
                          Stages& at, Totals& totals) {
  const Parts parts(shared);
  u32 before = 0;
  GRETA_NO_UNROLL
  for (u32 i = steps.first; i < steps.end; ++i) {
    at.filled(at.index).wait(at.parity);
    GRETA_UNROLL
    for (u32 product = 0; product < products; ++product) {
      start_products<false>(parts, at.index, product, totals.sums[product]);
    }
    if (i > steps.first) {
      wait_for_products<products>();
      if (STAGGER && i == steps.first + 1) let_next_begin();
      at.release(before, rank);
    }
    before = at.index;
    at.next();
  }
  wait_for_products<0>();
  GRETA_UNROLL
  for (u32 product = 0; product < products; ++product) claim_byte_sums(totals.sums[product]);
  at.release(before, rank);
}
#endif
