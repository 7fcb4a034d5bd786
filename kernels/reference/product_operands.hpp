#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/reference/operand_lines.hpp"

namespace greta::kernels {

/// Scales of an operand whose lines are along k: one for each block of `lines` x `length` elements.
struct LineScales {
  std::vector<float> values;  ///< blocks of the first lines first; empty: there are none
  std::int64_t lines = 1, length = 1;
  std::int64_t across = 1;  ///< blocks of a line
  /// In the root of the sum of (a b)^2, numbers closer to zero count as this one does.
  double least_number = 0;

  /// Calls body(begin, end, scale) for the parts of elements `first` to first + count - 1 of a line
  /// that share a scale, as places from 0 to `count`.
  template <typename Body>
  void for_parts(std::int64_t line, std::int64_t first, std::int64_t count,
                 const Body& body) const {
    const float* const of_line = values.data() + line / lines * across;
    for (std::int64_t begin = 0; begin < count;) {
      const std::int64_t block = (first + begin) / length;
      const std::int64_t end = std::min(count, (block + 1) * length - first);
      body(begin, end, static_cast<double>(of_line[block]));
      begin = end;
    }
  }
};

/// An operand of a product: its lines, times their scales.
struct ProductOperand {
  KeptLines lines;
  LineScales scales{};

  /// Writes `count` elements of a line, from element `first` on. Thread-safe.
  void read(std::int64_t line, std::int64_t first, std::int64_t count, double* to) const;
  /// Squares such elements in place, for the root of the sum of (a b)^2.
  void square(std::int64_t line, std::int64_t first, std::int64_t count, double* values) const;
  /// Returns whether all elements of `count` lines of `length` are finite.
  bool finite(std::int64_t count, std::int64_t length) const;
};

/// The operands of a product, and what their scales add to its error bound.
struct ProductOperands {
  ProductOperand a, b;
  double of_norm = 0;  ///< of the root of the sum of (a b)^2
  double least = 0;
};

}  // namespace greta::kernels
