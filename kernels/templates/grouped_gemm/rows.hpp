#pragma once

#include <cstdint>
#include <vector>

#include "kernels/templates/gemm/row_groups.hpp"

/// The numbers of rows of groups in plain inputs, from which work is counted.
namespace greta::kernels::grouped_gemm {

/// How rows are distributed over groups in plain inputs.
enum class Routing { balanced, skewed };

/// Returns the number of rows of each group, which depends on nothing but the extents. Balanced
/// groups have from 3/4 to 5/4 of the mean: of m / groups rows, or of m / 2 rows of masked groups.
/// Skewed ones have shares of 1, 1/2, 1/3 and so on in a mixed order, and the largest of masked
/// groups has m rows; so some groups may be empty.
std::vector<std::int64_t> rows_of_groups(const gemm::RowGroups& shape, Routing routing);

}  // namespace greta::kernels::grouped_gemm
