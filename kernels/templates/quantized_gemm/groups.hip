// Which rows and weights a workgroup multiplies: those of one product, or with GROUPED of one of several
// groups of rows (common/groups.hip), whose weights lie one after the other.
#pragma once

#include "common/groups.hip"
#include "quantized_gemm/epilogue.hip"

#if GROUPED == 3
#error "there are no batches"
#endif

// What follows the other parameters of a kernel, and its name.
#if GROUPED
#define GROUP_PARAMETERS , const int *__restrict__ group_rows, u32 groups
#define ALL_ROWS AllRows{m, group_rows, groups}
#define QUANTIZED_ENTRY(kernel) quantized_grouped_gemm_##kernel
#else
#define GROUP_PARAMETERS
#define ALL_ROWS AllRows{m, nullptr, 0}
#define QUANTIZED_ENTRY(kernel) quantized_gemm_##kernel
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

// The first row of weights of a group.
GRETA_DEVICE u32 first_line_of(const Group& group, u32 n) { return group.index * product_columns(n); }
