#pragma once

#include <cstdint>

#include "kernels/model/tensor.hpp"

namespace greta::kernels {

/// Returns ids of different experts, of `experts`, in each row of an i32 tensor. In rows with more
/// columns than there are experts, these come again. Equal seeds give equal ids.
HostTensor different_experts(const TensorSpec& spec, std::int64_t experts, std::uint64_t seed);
/// Returns the number of different ids in that tensor, without making it.
std::int64_t count_different_experts(const TensorSpec& spec, std::int64_t experts,
                                     std::uint64_t seed);

}  // namespace greta::kernels
