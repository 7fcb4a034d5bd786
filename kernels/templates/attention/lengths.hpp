#pragma once

#include <cstdint>
#include <functional>

#include "kernels/templates/attention/shape.hpp"

/// Lengths of sequences in the plain inputs of a problem, from which its work is counted.
namespace greta::kernels::attention {

/// Queries and valid keys of a sequence.
struct Lengths {
  std::int64_t queries = 0, keys = 0;
};

/// Calls use(lengths, count) for the sequences in their order, where `count` ones have the same
/// lengths. All have all queries and keys, or an equal share of packed tokens. Ragged ones have
/// different lengths, which depend on nothing but the sequence's number and the extents: with a
/// cache from their number of queries up to its capacity, packed ones from one part to 1024 parts
/// of all tokens.
void for_each_length(const Shape& shape,
                     const std::function<void(const Lengths& lengths, std::int64_t count)>& use);

}  // namespace greta::kernels::attention
