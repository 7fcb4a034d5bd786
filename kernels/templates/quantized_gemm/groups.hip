// Which rows and weights a workgroup multiplies: those of one product, or with GROUPED of one of several
// groups of rows (common/groups.hip), whose weights lie one after the other.
#pragma once

#include "common/group_lines.hip"
#include "quantized_gemm/epilogue.hip"

#if GROUPED
#define QUANTIZED_ENTRY(kernel) quantized_grouped_gemm_##kernel
#else
#define QUANTIZED_ENTRY(kernel) quantized_gemm_##kernel
#endif

// The first row of weights of a group.
GRETA_DEVICE u32 first_line_of(const Group& group, u32 n) { return group.index * product_columns(n); }
