#pragma once

#include <memory>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Returns the FP64 reference of a softmax problem, which checks every element. `inputs` contain X
/// and, if it is additive, mask, by name.
///
/// An element is e^d / S, where d is its distance to the row's largest element and S the sum over
/// the row. With u = 2^-24, its relative error in f32 is at most the sum of
/// - (6 + 3 |d|) 2u for its exponential, which is the product of two: of the element relative to a
///   thread's maximum, and of that relative to the row's. Each is within 3 + 2 |x| ulp (Vulkan's
///   precision of exp), with differences rounded once. e^0 is exact.
/// - the error of S through its terms: the mean over the row, weighted with the elements' shares,
///   of (3 (1 + m) + 3 |d|) 2u. m is the number of merges of partial sums, each of which may
///   rescale.
/// - rows::sum_error(cols) for the additions.
/// - 7u for a division within 2.5 ulp and two products.
/// - u (|a| + |b|) for elements that are scaled or masked, where a and b are the rounded
///   intermediate results of this element and of the largest. If the rounding errors exceed the
///   distances, an element may have any share between its own and that of the largest element.
/// Rounding to the output type is added.
std::unique_ptr<Reference> softmax_reference(const Problem& problem,
                                             const std::vector<HostTensor>& inputs,
                                             std::uint64_t seed);

}  // namespace greta::kernels
