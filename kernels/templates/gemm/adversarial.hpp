#pragma once

#include <cstdint>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels::gemm {

/// Implements Operation::harden. Makes rows of A, columns of B and the epilogue's operands extreme,
/// independently of each other. Every element of C stays below an eighth of its type's range.
/// Columns of B keep a mean of zero, as GemmErrorModel requires. Elements of A and B are normal
/// numbers, because some matrix instructions (gfx90a) flush subnormal 16-bit inputs to zero.
void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed);

}  // namespace greta::kernels::gemm
