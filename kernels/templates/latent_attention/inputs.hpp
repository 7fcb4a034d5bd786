#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/templates/latent_attention/shape.hpp"

/// What the definitions of latent_attention and tree_attention have in common.
namespace greta::kernels::latent {

/// Returns one operand's plain contents: lengths of attention::for_each_length(), block tables with
/// all pages, random trees, and queries scaled so that the standard deviation of the scores is
/// about 4/3.
HostTensor input(const Shape& shape, const TensorSpec& spec, std::uint64_t seed);

/// Makes plain inputs adversarial: lengths out of range, NaN behind the valid keys, scores far
/// apart, and trees of all kinds: chains, stars, all or no bits, bits of queries that do not exist.
void harden(const Shape& shape, std::vector<HostTensor>& inputs, const InputSeed& seed);

/// Checks heads, keys, strides and numbers of rows.
Result<void> check(const Problem& problem, const Shape& shape);

/// Returns the attributes that both operations have: scale, q_stride, lse, page_size and lengths.
std::vector<Attribute> attributes(std::function<std::int64_t(const Problem&)> packed_queries);

/// Fills in what both operations have in common.
void set_rows_operation(Operation& operation, Shape (*shape)(const Problem&));

}  // namespace greta::kernels::latent
