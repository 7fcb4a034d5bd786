#pragma once

#include <cstddef>

#include "kernels/model/problem.hpp"

namespace greta {

/// Hashes a problem's fields, without making its key.
struct ProblemHash {
  std::size_t operator()(const Problem& problem) const;
};

}  // namespace greta
