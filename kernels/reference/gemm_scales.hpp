#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::kernels {

/// Scales of an operand whose lines are along k: one for each block of `lines` x `length` elements.
struct LineScales {
  std::vector<float> values;  ///< blocks of the first lines first; empty: there are none
  std::int64_t lines = 1, length = 1;
  std::int64_t across = 1;  ///< blocks of a line
  /// In the root of the sum of (a b)^2, numbers closer to zero count as this one does.
  double least_number = 0;

  double at(std::int64_t line, std::int64_t k) const {
    return values[static_cast<std::size_t>(line / lines * across + k / length)];
  }
};

/// The scales of a product's operands, and what they add to its error bound.
struct ProductScales {
  LineScales a, b;
  double of_norm = 0;  ///< of the root of the sum of (a b)^2
  double least = 0;
};

}  // namespace greta::kernels
