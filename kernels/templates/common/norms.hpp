#pragma once

#include <string_view>
#include <vector>

#include "kernels/model/operation.hpp"

/// What norms of rows share, besides what all operations on rows do.
namespace greta::kernels::rows {

float epsilon(const Problem& problem);

/// The attribute `affine`: what a normalised element is multiplied with and what is added to it,
/// for operations that know these; the first is the default.
Attribute affine_attribute(const char* help, std::vector<std::string> allowed);
Attribute epsilon_attribute();

/// Adds weight and bias where the problem has them. `fallback`: what the operation's `affine` is
/// where nobody says.
void add_affine(std::vector<TensorSpec>& tensors, const Problem& problem,
                std::string_view fallback);

/// Operation::harden of a norm. Squares of a row's elements, and of what weight and bias make
/// of them, add up to numbers that f32 has.
void harden_norm(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed);

}  // namespace greta::kernels::rows
