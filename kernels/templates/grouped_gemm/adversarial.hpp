#pragma once

#include <cstdint>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels::grouped_gemm {

/// Implements Operation::harden. Makes rows of A and columns of B extreme, as for gemm, and rows of
/// groups as harden_rows() does.
void harden(const Problem& problem, std::vector<HostTensor>& inputs, const InputSeed& seed);

/// Rows from `first` to `end` - 1.
struct RowRange {
  std::int64_t first = 0, end = 0;
};

/// Gives groups arbitrary numbers of rows, among them none, one, and all; some numbers are out of
/// range. Returns the rows of A that belong to no group.
std::vector<RowRange> draw_groups(const Problem& problem, std::vector<HostTensor>& inputs,
                                  const InputSeed& seed);
/// Makes rows of a floating-point matrix NaN.
void hide(HostTensor& a, const RowRange& rows);
/// Does both, for an A of floating-point numbers.
void harden_rows(const Problem& problem, std::vector<HostTensor>& inputs, const InputSeed& seed);

}  // namespace greta::kernels::grouped_gemm
