// Which rows, lines of B and scales a workgroup multiplies, and what GATE is: as in groups.hip. Of each PART
// neighbours of the product's columns the first half are gates. args has n.
#pragma once

#if !defined(GATE) || GATE < 0 || GATE > 2
#error "GATE must be defined: 0, 1 or 2"
#endif
#if GROUPED == 3
#error "there are no batches"
#endif

#include "common/groups.glsl"
#if GATE != 0
#include "common/activation.glsl"
#endif

uint product_columns() { return GATE != 0 ? 2 * args.n : args.n; }

// The column of C that a column of the product belongs to.
uint column_of_c(uint col) { return GATE != 0 ? col / PART * (PART / 2) + col % (PART / 2) : col; }

// The line of B that a column of the product is multiplied by. Columns past the last one repeat it.
uint line_of_column(uint col) {
  const uint line = min(column_of_c(col), args.n - 1);
  return GATE != 0 && col % PART >= PART / 2 ? args.n + line : line;
}

// Where the scales of a group's rows and lines begin. `blocks`: scales of a row.
uint64_t first_scale_a(Group group, uint blocks) {
  const uint rows = SCALES == 0 ? group.index : group.first;
  return args.scales_a + uint64_t(rows) * (SCALES >= 2 ? blocks : 1u) * SCALE_BYTES;
}
uint64_t first_scale_b(Group group, uint blocks) {
  const uint lines = product_columns();
  const uint rows = SCALES == 0 ? 1u : SCALES == 2 ? (lines + SCALE_LINES - 1) / SCALE_LINES : lines;
  return args.scales_b + uint64_t(group.index) * rows * (SCALES >= 2 ? blocks : 1u) * SCALE_BYTES;
}

#if GATE != 0
float gated_value(float gate, float up) { return (GATE == 1 ? silu(gate) : gelu_tanh(gate)) * up; }
#endif
