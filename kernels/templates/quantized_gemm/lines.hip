// The weights of a lane's lines of TN tiles, loaded to registers in units of 128.
#pragma once

#include "quantized_gemm/products.hip"

#if GROUP != 128
#error "units of 128 weights have one scale"
#endif

// Where a lane's lines of each tile begin.
struct Lines {
  const u8* integers[TN][lane_lines];
  const Scale* scales[TN][lane_lines];
  const u8* zeros[TN][lane_lines];
};

// Lanes past the last column repeat it.
GRETA_DEVICE Lines lines_from(const Weights& weights, u32 first_line, u32 first_col, u32 n, u32 k) {
  Lines lines;
  GRETA_UNROLL
  for (u32 i = 0; i < TN * lane_lines; ++i) {
    const u32 t = i / lane_lines, of_lane = i % lane_lines;
    const u32 of_tile = first_col + t * 16 + of_lane * 8 + line_of_lane();
    const u64 col = first_line + line_of_column(smaller(of_tile, product_columns(n) - 1), n);
    lines.integers[t][of_lane] =
        weights.integers + place_of_weights(col, k) +
        place_in_row(bytes_of_weights(part_of_lane() * lane_chunks * CHUNK_WEIGHTS));
    lines.scales[t][of_lane] = weights.scales + col * (k / GROUP);
    lines.zeros[t][of_lane] = weights.zeros + (ZEROS ? col * (k / GROUP) : 0);
  }
  return lines;
}

// The unit `later` ones after unit `index`.
GRETA_DEVICE Unit load_unit(const Lines& lines, u32 index, u32 later) {
  Unit unit;
  GRETA_UNROLL
  for (u32 i = 0; i < TN * lane_lines; ++i) {
    const u32 t = i / lane_lines, of_lane = i % lane_lines;
    const u8* const from = lines.integers[t][of_lane] + place_in_row(bytes_of_weights(index * unit_weights));
    GRETA_UNROLL
    for (u32 c = 0; c < lane_chunks; ++c) {
      const u64 bytes = bytes_of_weights(later * unit_weights + c * CHUNK_WEIGHTS);
      unit.integers[t][of_lane][c] = load_integers(from + place_in_row(bytes));
    }
    unit.scale[t][of_lane] = load_now(lines.scales[t][of_lane] + index + later);
    unit.zero[t][of_lane] = ZEROS ? lines.zeros[t][of_lane][index + later] : implied_zero;
  }
  return unit;
}
