// Products with quantised weights by matrix cores. A workgroup has TN x 16 columns and RT x 16 rows of
// C. Its WAVES divide K among themselves in units of 128 weights, each with UNROLL units in flight,
// and add their sums through shared memory in the end. Weights pass no shared memory.

#if !defined(UNROLL) || UNROLL < 1
#error "UNROLL must be defined and at least 1"
#endif

#include "quantized_gemm/lines.hip"

GRETA_KERNEL(THREADS)
QUANTIZED_ENTRY(matrix)
(const In* GRETA_READ a, const u8* GRETA_READ b, const Scale* GRETA_READ scales,
 const u8* GRETA_READ zeros, const Out* GRETA_READ added, Out* __restrict__ c, u32 m, u32 n, u32 k,
 u32 tiles_n GROUP_PARAMETERS) {
#if GROUPED
  begin_launch();  // another operation writes the rows of groups
#else
  begin_launch_early();
#endif
  GRETA_SHARED(float, sums, WAVES * floats_of_sums);
  const u32 block = block_index<THREADS>(), tile_row = FEW_ROWS ? 0 : block / tiles_n;
  const Group group = group_of_line<RT * 16>(ALL_ROWS, tile_row);
  const u32 first_row = group.row, first_col = (block - tile_row * tiles_n) * (TN * 16);
  if (first_row >= group.rows || first_col >= product_columns(n)) return;  // of the whole workgroup
  a += u64(group.first) * k;
  c += u64(group.first) * n;
  m = group.rows;
  const u32 units = k / unit_weights;

  // Lanes past the last row repeat it.
  const In* row[RT][row_lines];
  GRETA_UNROLL
  for (u32 i = 0; i < RT * row_lines; ++i) {
    const u32 at = first_row + i / row_lines * 16 + i % row_lines * 8 + line_of_lane();
    row[i / row_lines][i % row_lines] =
        a + u64(smaller(at, m - 1)) * k + part_of_lane() * lane_chunks * CHUNK_WEIGHTS;
  }
  const Lines lines = lines_from({b, scales, zeros}, first_line_of(group, n), first_col, n, k);
  Sums total[RT][TN] = {};
  for (u32 first = wave_index() * UNROLL; first < units; first += WAVES * UNROLL) {
    // The last units may have been multiplied before.
    const u32 index = smaller(first, units - UNROLL);
    Unit unit[UNROLL];
    GRETA_UNROLL
    for (u32 u = 0; u < UNROLL; ++u) unit[u] = load_unit(lines, index, u);
    await_earlier_launches();
    Rows rows = load_rows(row[0], index * unit_weights);
    GRETA_UNROLL
    for (u32 u = 0; u < UNROLL; ++u) {
      Sums part[RT][TN] = {};
      GRETA_UNROLL
      for (u32 c = 0; c < lane_chunks; ++c) {
        // A's part of the next chunk is under way while this one is multiplied.
        const u32 chunk = u * lane_chunks + c, k_of_unit = index * unit_weights;
        Rows later = rows;
        if (chunk + 1 < UNROLL * lane_chunks) {
          later = load_rows(row[0], k_of_unit + place_of_chunk(chunk + 1));
        }
        const u32 at = k_of_unit + place_of_chunk(chunk);
        add_chunk(unit[u], c, part, [&](u32 r) { return r == 0 ? rows : load_rows(row[r], at); });
        rows = later;
      }
      if (index + u >= first) add_unit(unit[u], part, total);
    }
  }

  await_earlier_launches();  // of waves without units, too
  store_tiles(total, sums, c, added, first_row, first_col, m, n);
}
