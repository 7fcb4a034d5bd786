// Groups of rows of A and C, each of which is multiplied by a B of its own: as in groups.hip, where
// GROUPED is described, with why a search needs only the groups' ends.
#pragma once

#if GROUPED == 1 || GROUPED == 2
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer I32 { int v; };

// A number of rows in memory, as one that is possible.
uint possible_rows(uint group) {
  const int rows = I32(args.group_rows + uint64_t(group) * 4).v;
  return min(uint(max(rows, 0)), args.m);
}

uint group_start(uint group) { return group == 0 ? 0 : possible_rows(group - 1); }
#endif

#if GROUPED != 0
// Makes the group current that has the line of tiles of `height` rows that starts at `row` of all,
// and gives the group's row where it starts. Returns false for a line past all rows of the group.
bool enter_group(uint height, inout uint row) {
  const uint line = row / height;
#if GROUPED == 1
  uint low = 0, high = args.groups;
  while (high - low > 1) {
    const uint middle = (low + high) / 2;
    if (group_start(middle) / height + middle <= line) {
      low = middle;
    } else {
      high = middle;
    }
  }
  const uint group = low, first = group_start(low), end = possible_rows(low);
  group_m = end - min(first, end);
  row = (line - (first / height + low)) * height;
#else
  const uint lines = (args.m + (height - 1)) / height, group = line / lines;  // lines of a group
  const uint first = group * args.m;
#if GROUPED == 2
  group_m = possible_rows(group);
#else
  group_m = args.m;
#endif
  row = line % lines * height;
#endif
#if GROUPED == 3
  group_a = args.a + group * args.a_batch * IN_BYTES;
  group_b = args.b + group * args.b_batch * IN_BYTES;
  group_c = args.c + group * args.c_batch * OUT_BYTES;
  group_residual = args.residual + group * args.c_batch * OUT_BYTES;
#else
  group_a = args.a + uint64_t(first) * args.k * IN_BYTES;
  group_b = args.b + uint64_t(group) * product_cols() * args.k * IN_BYTES;
  group_c = args.c + uint64_t(first) * args.n * OUT_BYTES;
#endif
  return row < group_m;
}
#else
bool enter_group(uint height, inout uint row) { return true; }
#endif
