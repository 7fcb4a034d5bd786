// The group of rows (groups.hip) that has a workgroup's line of tiles, for kernels whose last parameters are
// the rows of groups. Without groups there is one, of all rows.
#pragma once

#include "common/groups.hip"

#if GROUPED == 3
#error "there are no batches"
#endif

// What follows the other parameters of a kernel.
#if GROUPED
#define GROUP_PARAMETERS , const int *GRETA_READ group_rows, u32 groups
#define ALL_ROWS AllRows{m, group_rows, groups}
#else
#define GROUP_PARAMETERS
#define ALL_ROWS AllRows{m, nullptr, 0}
#endif

struct AllRows {
  u32 m;
  const int* group_rows;  // ends or numbers of rows of the groups
  u32 groups;
};

// Finds the rows of this line of tiles of `height` rows.
template <u32 height>
GRETA_DEVICE Group group_of_line(const AllRows& all, u32 line) {
#if GROUPED == 2
  // A launch may have more workgroups than tiles.
  if (line / ((all.m + (height - 1)) / height) >= all.groups) return {0, 0, 0, 0};
#endif
#if GROUPED
  return same_in_wave(find_group<height>(all, line));
#else
  return find_group<height>(all, line);
#endif
}
