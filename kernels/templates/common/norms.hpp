#pragma once

#include <vector>

#include "kernels/model/kernel_template.hpp"
#include "kernels/templates/common/render.hpp"

/// What norms of rows share, besides what all operations on rows do.
namespace greta::rows {

bool has_weight(const Problem& problem);
bool has_bias(const Problem& problem);

/// WEIGHT and BIAS.
Defines norm_defines(const Problem& problem);
float epsilon(const Problem& problem);

/// The attribute `affine`: what a normalised element is multiplied with and what is added to it,
/// for operations that know these; the first is the default.
Attribute affine_attribute(const char* help, std::vector<std::string> allowed);
Attribute epsilon_attribute();

/// Adds weight and bias where the problem has them.
void add_affine(std::vector<TensorSpec>& tensors, const Problem& problem);

}  // namespace greta::rows
