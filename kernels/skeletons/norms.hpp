#pragma once

#include <string_view>
#include <vector>

#include "kernels/model/operation.hpp"

/// Shared parts of row norms, in addition to those of all row operations.
namespace greta::kernels::rows {

float epsilon(const Problem& problem);

/// Returns the attribute `affine`: the scale and the offset applied to normalised elements, for
/// operations that support them. The first value is the default.
Attribute affine_attribute(const char* help, std::vector<std::string> allowed);
Attribute epsilon_attribute();

/// Returns the attribute `prologue` of products A B: what is done to A's rows first.
Attribute prologue_attribute();
/// Returns the norm of A's rows as a problem of its own, of a product with prologue rmsnorm whose
/// `m` and `k` are A's extents.
Problem rmsnorm_before(const Problem& product);

/// Adds weight and bias if the problem has them. `fallback` is the operation's default of `affine`.
void add_affine(std::vector<TensorSpec>& tensors, const Problem& problem,
                std::string_view fallback);

/// Implements Operation::harden for norms. Limits the magnitudes so that the squares of a row's
/// elements, with and without weight and bias, have a finite sum in f32.
void harden_norm(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed);

}  // namespace greta::kernels::rows
