#pragma once

#include <vector>

#include "kernels/model/problem.hpp"
#include "kernels/model/tensor.hpp"
#include "kernels/templates/quantized_gemm/shape.hpp"

namespace greta::kernels::quantized_gemm {

/// Implement Operation::input and Operation::harden.
HostTensor input(const Problem& problem, const TensorSpec& spec, std::uint64_t seed);
void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed);

/// Makes operands extreme, as harden() does. `fully_checked`: by the reference.
void harden_operands(const Shape& shape, bool fully_checked, std::vector<HostTensor>& inputs,
                     std::uint64_t seed);

}  // namespace greta::kernels::quantized_gemm
