#pragma once

#include <cstdint>

#include "kernels/model/operation.hpp"

/// Kernels of one's own beside GRETA's operations.
namespace greta::tuner {

/// Returns the problem of `own` whose dimensions have the extents of the dimensions of `problem`
/// with the same names, and the own operation's defaults otherwise. Fails with `invalid_argument`
/// if a dimension has neither, if an extent other than 1 has no counterpart, or if the problem is
/// not valid.
Result<Problem> same_problem(const Operation& operation, const Problem& problem,
                             const Operation& own);

/// Checks that an operation computes the same as another one: that the FP64 references of a small
/// problem agree on the same inputs, within their bounds. Inputs and outputs correspond by their
/// order. Fails with `invalid_argument` and the first difference.
Result<void> check_same(const Operation& operation, const Problem& problem, const Operation& own,
                        std::uint64_t seed);

}  // namespace greta::tuner
