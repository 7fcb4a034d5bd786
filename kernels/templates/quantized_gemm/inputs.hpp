#pragma once

#include <vector>

#include "kernels/model/problem.hpp"
#include "kernels/model/tensor.hpp"

namespace greta::kernels::quantized_gemm {

/// Implement Operation::input and Operation::harden.
HostTensor input(const Problem& problem, const TensorSpec& spec, std::uint64_t seed);
void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed);

}  // namespace greta::kernels::quantized_gemm
