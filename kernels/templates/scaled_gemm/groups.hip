// Which rows, lines of B and scales a workgroup multiplies: those of one product, or with GROUPED of one of
// several groups of rows (common/groups.hip), whose B and scales lie one after the other.
//
// GATE: 0 none; 1 C = silu(gate) up, where the first n lines of B are gates and the last n ups; 2 gelu in its
// tanh form in place of silu. With gates the product has 2 n columns: of each `part` neighbours the first
// half are gates and the second half their ups, so that a thread can have both of one column of C.
#pragma once

#if !defined(GATE) || GATE < 0 || GATE > 2
#error "GATE must be defined: 0, 1 or 2"
#endif

#include "common/group_lines.hip"
#include "scaled_gemm/numbers.hip"
#if GATE
#include "common/activation.hip"
#endif

#if GROUPED
#define SCALED_ENTRY(kernel) scaled_grouped_gemm_##kernel
#else
#define SCALED_ENTRY(kernel) scaled_gemm_##kernel
#endif

GRETA_DEVICE u32 product_columns(u32 n) { return GATE ? 2 * n : n; }

// The column of C that a column of the product belongs to.
template <u32 part>
GRETA_DEVICE u32 column_of_c(u32 col) {
  return GATE ? col / part * (part / 2) + col % (part / 2) : col;
}

// The line of B that a column of the product is multiplied by. Columns past the last one repeat it.
template <u32 part>
GRETA_DEVICE u32 line_of_column(u32 col, u32 n) {
  const u32 line = smaller(column_of_c<part>(col), n - 1);
  return GATE && col % part >= part / 2 ? n + line : line;
}

// The scales of a group, whose first row and line are 0.
GRETA_DEVICE ScalePair scales_of_group(const ScalePair& all, const Group& group, u32 n) {
  const u32 lines = product_columns(n);
  const u32 of_b = SCALES == 0 ? 1 : SCALES == 2 ? (lines + scale_lines - 1) / scale_lines : lines;
  const u64 length = SCALES >= 2 ? all.blocks : 1;
  return {all.a + (SCALES == 0 ? group.index : group.first) * length,
          all.b + u64(group.index) * of_b * length, all.blocks};
}

// The number of B's first byte of a group.
GRETA_DEVICE u64 start_of_b(const Group& group, u32 n, u32 k) {
  return u64(group.index) * product_columns(n) * k;
}

#if GATE
GRETA_DEVICE float gated_value(float gate, float up) {
  return (GATE == 1 ? silu(gate) : gelu_tanh(gate)) * up;
}
#endif
