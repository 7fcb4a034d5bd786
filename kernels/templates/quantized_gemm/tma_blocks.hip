// How warpgroups multiply weights that are blocks of GGUF files (tma.hip), unit by unit (tma_units.hip): while
// matrix cores multiply one, threads make the operands of the next one. Of boxes, a unit is read when it is
// made; from device memory, those of the next step are loaded as soon as this step's have become operands.
#pragma once

#include "quantized_gemm/tma_units.hip"

// Nothing is loaded before a tile's turn.
struct Ahead {};

GRETA_DEVICE Ahead load_ahead(const Arguments&, Tile, u32) { return {}; }

// What makes the units of a tile's steps, one after the other, from step `first` on.
#if LINE_STAGES
struct Units {
  Raw raw;
  BlockLines lines;
  const u8* memory;
  Ring<LINE_STAGES>& ring;
  u32 place;  // of the step in its box

  GRETA_DEVICE Units(const Arguments&, const u8* shared, Tile, u32 first, Rings& rings)
      : memory(shared), ring(rings.lines), place(place_in_box(first, 0)) {
    enter_box(first - place);
  }
  GRETA_DEVICE void enter_box(u32 step_index) {
    ring.filled().wait(ring.parity);
    lines = lines_of_box(memory, ring.buffer(), step_index);
  }
  GRETA_DEVICE void make(u32 u, Unit& unit) {
    load_unit(raw, lines, u, place);
    make_unit(raw, u, place, unit);
  }
  // All units of step i have been made; `more`: and it isn't the last one.
  GRETA_DEVICE void next_step(u32 first, u32 i, bool more) {
    place = place_in_box(first, i + 1);
    if (place == 0 || !more) {
      ring.release();
      ring.next();
    }
    if (place == 0 && more) enter_box(first + i + 1);
  }
};
#else
struct Units {
  Raw raw;
  BlockLines lines;
  u32 index;  // of the step

  GRETA_DEVICE Units(const Arguments& args, const u8*, Tile tile, u32 first, Rings&)
      : lines(lines_of(args, tile)), index(first) {
    GRETA_UNROLL
    for (u32 u = 0; u < units_of_step; ++u) load_unit(raw, lines, u, first);
  }
  GRETA_DEVICE void make(u32 u, Unit& unit) {
    make_unit(raw, u, index, unit);
    refill(raw, lines, u, index);
  }
  GRETA_DEVICE void next_step(u32, u32, bool) { ++index; }
};
#endif

#if ROUND
// Those of ones in q4_k are not needed: what they add up is part of the weights.
constexpr u32 unit_stride = FORMAT == 4 ? 2 : 1;

// Makes a unit of weights that are rounded.
GRETA_DEVICE void make_rounded(Units& units, u32 u, Unit& unit) {
  units.make(u, unit);
  GRETA_UNROLL
  for (u32 i = 0; i < 2; ++i) {
    const u32 scale = twice_rounded(unit.scale[i]);
#if FORMAT == 4
    const u32 added = twice_rounded(unit.rest[i]);
#else
    const u32 added = negative_zeros;
#endif
    GRETA_UNROLL
    for (u32 e = 0; e < unit_fragments * 2; ++e) {
      u32& pair = unit.fragment[e / 2][e % 2 * 2 + i];
      pair = rounded(pair, scale, added);
    }
  }
}

// Adds the products of a tile's steps, from step `first` on.
GRETA_DEVICE void consume(const Arguments& args, u8* memory, SharedMemory shared, Tile tile, Tile,
                          u32 first, u32 steps, Rings& rings, Ahead&, Sums (&totals)[products]) {
  if (steps == 0) return;
  Units units(args, memory, tile, first, rings);
  Unit unit[2];
  make_rounded(units, 0, unit[0]);
  RowsInUse rows(rings.rows);
  GRETA_NO_UNROLL
  for (u32 i = 0; i < steps; ++i) {
    const bool more = i + 1 < steps;
    const u32 start = rows.wait();
    GRETA_UNROLL
    for (u32 u = 0; u < units_of_step; u += unit_stride) {
      const u32 turn = u / unit_stride % 2, next = (u + unit_stride) % units_of_step;
      start_products<false>(shared, start, k_of_unit(u), unit[turn].fragment, totals[0]);
      wait_for_products<1>();
      if (u == 0) rows.release_earlier();
      if (next == 0) units.next_step(first, i, more);
      if (next != 0 || more) make_rounded(units, next, unit[turn ^ 1]);
    }
    rows.next();
  }
  rows.finish(totals);
}
#elif FORMAT < 4 && LINE_STAGES > 0
// Adds the products of a tile's steps, from step `first` on. The sums of two units take turns: those of one are
// scaled, and the operands of the unit after the next one are made, while the next one is multiplied.
GRETA_DEVICE void consume(const Arguments& args, u8* memory, SharedMemory shared, Tile tile, Tile,
                          u32 first, u32 steps, Rings& rings, Ahead&, Sums (&totals)[products]) {
  if (steps == 0) return;
  Units units(args, memory, tile, first, rings);
  Unit unit[2];
  Sums part[2];
  units.make(0, unit[0]);
  rings.rows.filled().wait(rings.rows.parity);
  start_products<true>(shared, rings.rows.buffer() * TileA::bytes, 0, unit[0].fragment, part[0]);
  units.make(1, unit[1]);
  GRETA_NO_UNROLL
  for (u32 i = 0;; ++i) {
    const bool more = i + 1 < steps;
    const u32 start = rings.rows.buffer() * TileA::bytes;
    GRETA_UNROLL
    for (u32 u = 0; u < units_of_step; ++u) {
      const u32 next = u + 1, second = u + 2;
      claim_sums(totals[0]);  // they are added before the wait
      wait_for_products<0>();
      claim_sums(part[u % 2]);
      if (next < units_of_step) {
        start_products<true>(shared, start, k_of_unit(next), unit[next % 2].fragment, part[next % 2]);
      } else {
        rings.rows.release();
        rings.rows.next();
        if (!more) {
          add_scaled(totals[0], part[u % 2], unit[u % 2].scale);
          return;
        }
        rings.rows.filled().wait(rings.rows.parity);
        start_products<true>(shared, rings.rows.buffer() * TileA::bytes, 0, unit[0].fragment, part[0]);
      }
      add_scaled(totals[0], part[u % 2], unit[u % 2].scale);
      if (second == units_of_step) units.next_step(first, i, more);
      if (second < units_of_step || more) units.make(second % units_of_step, unit[u % 2]);
    }
  }
}
#else
// Adds the products of a tile's steps, from step `first` on.
GRETA_DEVICE void consume(const Arguments& args, u8* memory, SharedMemory shared, Tile tile, Tile,
                          u32 first, u32 steps, Rings& rings, Ahead&, Sums (&totals)[products]) {
  if (steps == 0) return;
  Units units(args, memory, tile, first, rings);
  Unit unit[2];
  units.make(0, unit[0]);
  Sums part;
  GRETA_NO_UNROLL
  for (u32 i = 0; i < steps; ++i) {
    const bool more = i + 1 < steps;
    rings.rows.filled().wait(rings.rows.parity);
    const u32 start = rings.rows.buffer() * TileA::bytes;
    GRETA_UNROLL
    for (u32 u = 0; u < units_of_step; ++u) {
      const u32 next = (u + 1) % units_of_step;
      start_products<true>(shared, start, k_of_unit(u), unit[u % 2].fragment, part);
      if (next == 0) units.next_step(first, i, more);
      if (next != 0 || more) units.make(next, unit[(u + 1) % 2]);
      wait_for_products<0>();
      claim_sums(part);
      add_scaled(totals[0], part, unit[u % 2].scale);
    }
    rings.rows.release();
    rings.rows.next();
  }
}
#endif
