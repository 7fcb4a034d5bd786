// Several products, each with a B of its own: as in groups.hip.
#pragma once

#include "common/groups.glsl"

#if GROUPED != 0
// Makes the group current that has the line of tiles of `height` rows that starts at `row` of all,
// and gives the group's row where it starts. Returns false for a line past all rows of the group.
bool enter_group(uint height, inout uint row) {
  const Group group = find_group(height, row / height);
  group_m = group.rows;
  row = group.row;
#if GROUPED == 3
  group_a = args.a + group.index * args.a_batch * IN_BYTES;
  group_b = args.b + group.index * args.b_batch * IN_BYTES;
  group_c = args.c + group.index * args.c_batch * OUT_BYTES;
  group_residual = args.residual + group.index * args.c_batch * OUT_BYTES;
#else
  group_a = args.a + uint64_t(group.first) * args.k * IN_BYTES;
  group_b = args.b + uint64_t(group.index) * product_cols() * args.k * IN_BYTES;
  group_c = args.c + uint64_t(group.first) * args.n * OUT_BYTES;
#endif
  return row < group_m;
}
#else
bool enter_group(uint height, inout uint row) { return true; }
#endif
