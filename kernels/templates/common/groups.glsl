// Groups of rows, each of which is multiplied by a matrix of its own: as in groups.hip, where GROUPED is
// described, with why a search needs only the groups' ends. args has m, and with GROUPED 1 or 2 group_rows
// and groups.
#pragma once

#if !defined(GROUPED) || GROUPED < 0 || GROUPED > 3
#error "GROUPED must be 0 to 3"
#endif

struct Group {
  uint index;
  uint first;  // its first row of A and C
  uint rows;
  uint row;  // of the group's, where the line of tiles starts: past all rows where there is none
};

#if GROUPED == 1 || GROUPED == 2
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer I32 { int v; };

// A number of rows in memory, as one that is possible.
uint possible_rows(uint group) {
  const int rows = I32(args.group_rows + uint64_t(group) * 4).v;
  return min(uint(max(rows, 0)), args.m);
}

uint group_start(uint group) { return group == 0 ? 0 : possible_rows(group - 1); }
#endif

// Finds the group that has this line of tiles of `height` rows.
Group find_group(uint height, uint line) {
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
  const uint first = group_start(low), end = possible_rows(low);
  return Group(low, first, end - min(first, end), (line - (first / height + low)) * height);
#elif GROUPED != 0
  const uint lines = (args.m + (height - 1)) / height, group = line / lines;  // lines of a group
#if GROUPED == 2
  const uint rows = possible_rows(group);
#else
  const uint rows = args.m;
#endif
  return Group(group, group * args.m, rows, line % lines * height);
#else
  return Group(0u, 0u, args.m, line * height);
#endif
}
