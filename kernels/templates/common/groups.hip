// Groups of rows, each of which is multiplied by a matrix of its own. A workgroup computes a tile of one
// of them. GROUPED says where their rows are:
//   0  there is one product
//   1  contiguous groups: the rows of all lie one after the other; group_rows are the groups' ends
//   2  masked groups: each has m rows, of which the first group_rows[group] are multiplied
//   3  a batch: each has m rows
// The host does not know the rows of groups: it launches as many lines of tiles as there can be, and
// a workgroup finds the group that has its line.
#pragma once

#if !defined(GROUPED) || GROUPED < 0 || GROUPED > 3
#error "GROUPED must be 0 to 3"
#endif

#include "common/uniform.hip"

struct Group {
  u32 index;
  u32 first;  // its first row of A and C
  u32 rows;
  u32 row;  // of the group's, where the line of tiles starts: past all rows where there is none
};

// A group that all lanes of a wave have found.
GRETA_DEVICE Group same_in_wave(const Group& group) {
  return {same_in_wave(group.index), same_in_wave(group.first), same_in_wave(group.rows),
          same_in_wave(group.row)};
}

#if GROUPED == 1 || GROUPED == 2
// A number of rows in memory, as one that is possible.
template <typename Rows>
GRETA_DEVICE u32 possible_rows(const Rows& args, u32 group) {
  const int rows = args.group_rows[group];
  return rows < 0 ? 0 : smaller(u32(rows), args.m);
}
#endif

#if GROUPED == 1
template <typename Rows>
GRETA_DEVICE u32 group_start(const Rows& args, u32 group) {
  return group == 0 ? 0 : possible_rows(args, group - 1);
}
#endif

// Finds the group that has this line of tiles of `height` rows. `args` has m, and with GROUPED 1 or 2
// group_rows and `groups`.
//
// Of contiguous groups, one that starts at row s has the lines from s / height + index on. The next
// one's first line is at least as far away as the rows need, because a / h + ceil(b / h) <=
// (a + b) / h + 1. So a search needs only the groups' ends, and no sum over all groups before.
template <u32 height, typename Rows>
GRETA_DEVICE Group find_group(const Rows& args, u32 line) {
#if GROUPED == 1
  u32 low = 0, high = args.groups;
  while (high - low > 1) {
    const u32 middle = (low + high) / 2;
    if (group_start(args, middle) / height + middle <= line) {
      low = middle;
    } else {
      high = middle;
    }
  }
  const u32 start = group_start(args, low), end = possible_rows(args, low);
  return {low, start, end > start ? end - start : 0, (line - (start / height + low)) * height};
#elif GROUPED
  const u32 lines = (args.m + (height - 1)) / height, group = line / lines;  // lines of a group
#if GROUPED == 2
  const u32 rows = possible_rows(args, group);
#else
  const u32 rows = args.m;
#endif
  return {group, group * args.m, rows, line % lines * height};
#else
  return {0, 0, args.m, line * height};
#endif
}
