#pragma once

#include <cstdint>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels::gemm {

/// Operation::harden: rows of A, columns of B and what the epilogue reads become extreme, each
/// in its own way, and every element of C stays below an eighth of its type's range. Columns of B
/// keep a mean of zero, as GemmErrorModel wants it. Elements of A and B are normal numbers, because
/// some matrix cores (gfx90a's) take subnormal ones of 16 bits for zeros.
void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed);

}  // namespace greta::kernels::gemm
