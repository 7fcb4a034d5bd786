#pragma once

#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Bytes of every operand's elements, once; of one that is read and written, twice.
double operand_bytes(const std::vector<TensorSpec>& tensors);

/// Every operand once, and `flops` for each of rows x cols elements.
Work work_per_element(const std::vector<TensorSpec>& tensors, const Problem& problem, double flops);

}  // namespace greta::kernels
