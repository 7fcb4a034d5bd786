#pragma once

#include <memory>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// FP64 reference of a softmax problem, every element of every row. `inputs` are X, and mask where
/// it is additive; they are found by name.
///
/// An element is e^d / S, d its distance to the row's largest and S the sum over the row. With
/// u = 2^-24 its relative error in f32 is at most
/// - (6 + 3 |d|) 2u of its exponential: the product of two, of an element relative to what one
/// thread
///   saw, and of that relative to the row, each within 3 + 2 |x| ulp (Vulkan's precision of exp),
///   with differences rounded once. e^0 is exact.
/// - the mean over the row, weighted with the elements' shares, of (3 (1 + m) + 3 |d|) 2u, m being
///   the merges of partial sums, each of which may rescale: the sum's error through its terms;
/// - rows::sum_error(cols) of adding them up;
/// - 7u of a division within 2.5 ulp and two products;
/// - u (|a| + |b|) for elements that are scaled or masked: a and b are the roundings of this one
/// and
///   of the largest. Where these are so large that distances vanish in them, an element may have
///   any share between its own and the largest one's.
/// Rounding to the output type comes on top.
std::unique_ptr<Reference> softmax_reference(const Problem& problem,
                                             const std::vector<HostTensor>& inputs,
                                             std::uint64_t seed);

}  // namespace greta::kernels
