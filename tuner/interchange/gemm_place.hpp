#pragma once

#include <cstdint>
#include <optional>

#include "kernels/model/problem_rules.hpp"
#include "runtime/device/result.hpp"

namespace greta::tuner {

/// Adds where a matrix of a GEMM is, as BLAS libraries say it: 'a', 'b' or 'c' of row-major
/// matrices, its number of lines, its leading dimension, and the distance from one matrix of a
/// batch to the next, in elements. A leading dimension below 1 is unknown, as is no distance;
/// make_problem() drops what packed matrices have. Of matrices with one line, only the distance
/// counts. Distance 0 means that all products have the same matrix. Fails with the
/// reason if GRETA has no such batch.
Result<void> add_place(char matrix, std::int64_t lines, std::int64_t ld,
                       std::optional<std::int64_t> distance, ProblemRequest& request);

}  // namespace greta::tuner
