#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/pipeline/compute/tensor.hpp"

/// Checks of the operands of chains. They throw Error.
namespace greta::runtime {

/// Checks a tensor's number of dimensions.
void check_rank(std::string_view chain, std::string_view name, const Tensor& tensor,
                std::size_t rank);
/// Checks that `whole` consists of `first` and two equal parts.
void check_halves(std::string_view chain, std::string_view what, std::int64_t whole,
                  std::int64_t first);

}  // namespace greta::runtime
