#pragma once

#include <cstdint>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels::grouped_gemm {

/// Implements Operation::harden. Makes rows of A and columns of B extreme, as for gemm, and rows of
/// groups as harden_rows() does.
void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed);

/// Gives groups arbitrary numbers of rows, among them none, one, and all; some numbers are out of
/// range. Rows of A that belong to no group become NaN.
void harden_rows(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed);

}  // namespace greta::kernels::grouped_gemm
