#pragma once

#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Returns the bytes of all operands; those that are read and written count twice.
double operand_bytes(const std::vector<TensorSpec>& tensors);

/// Returns the work of reading or writing every operand once, with `flops` per element of rows x
/// cols.
Work work_per_element(const std::vector<TensorSpec>& tensors, const Problem& problem, double flops);

}  // namespace greta::kernels
