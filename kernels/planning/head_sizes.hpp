#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/model/operation.hpp"

/// Heads whose values have another size than their keys, as with 192 and 128 elements in multi-head
/// latent attention.
namespace greta::kernels {

/// Returns the attribute `v_dim`, the elements of a head of values: a multiple of `step` up to
/// `most`, by default those of a head of keys, `dim`. `examples` are further values to test.
Attribute v_dim_attribute(std::string help, std::int64_t step, std::int64_t most,
                          std::vector<std::string> examples);
/// Returns the elements of a head of values.
std::int64_t v_dim_of(const Problem& problem);

}  // namespace greta::kernels
