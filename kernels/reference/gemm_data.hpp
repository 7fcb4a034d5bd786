#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/model/tensor.hpp"
#include "kernels/reference/gemm_error.hpp"
#include "kernels/reference/gemm_scales.hpp"

namespace greta::kernels {

/// The inputs of a GEMM problem for its reference, and the terms of its epilogue.
class GemmData {
 public:
  GemmData(const Problem& problem, const std::vector<HostTensor>& inputs,
           const ProductScales* scales = nullptr);

  /// Returns `count` elements of a row of op(A) from `first` on, after the prologue.
  std::vector<double> a_row(std::int64_t row, std::int64_t first, std::int64_t count) const;

  /// Multiplies elements of a column of op(B), from `first` on, by their scales.
  template <typename Column>
  void scale_column(std::int64_t col, std::int64_t first, Column&& column) const {
    if (scales_.b.values.empty()) return;
    for (std::int64_t i = 0; i < column.size(); ++i) column[i] *= scales_.b.at(col, first + i);
  }

  /// Squares elements of a row of op(A), or of a column of op(B), from `first` on, for the norms.
  template <typename Row>
  void square_row(std::int64_t row, std::int64_t first, Row&& values) const {
    square(scales_.a, row, first, values);
  }
  template <typename Column>
  void square_column(std::int64_t col, std::int64_t first, Column&& values) const {
    square(scales_.b, col, first, values);
  }

  /// Returns whether all elements of scaled operands and their scales are finite.
  bool finite() const { return finite_; }

  /// Returns all terms of a column of the product except the product itself.
  GemmTerms terms(std::int64_t row, std::int64_t col) const;

  Expected element(std::int64_t row, std::int64_t col) const;

  GemmErrorModel model;
  std::int64_t m, n, k;
  /// op(B), column after column, without scales. f32, f16 and bf16 inputs are exact in f32.
  std::vector<float> b;

 private:
  /// Returns the terms of a column of the product.
  GemmTerms all_terms(std::int64_t row, std::int64_t col) const;

  template <typename Line>
  void square(const LineScales& scales, std::int64_t line, std::int64_t first, Line& values) const {
    for (std::int64_t i = 0; i < values.size(); ++i) {
      double size = std::abs(values[i]);
      if (scales.least_number > 0) {
        size = std::max(size, scales.least_number * std::abs(scales.at(line, first + i)));
      }
      values[i] = size * size;
    }
  }

  std::vector<float> a_;  ///< op(A) without the prologue, row after row
  HostTensor bias_, residual_, old_;
  ProductScales scales_;
  bool finite_ = true;
  // With a norm only:
  std::vector<float> weight_;
  std::vector<double> factors_;  ///< of each row
  std::vector<double> sizes_;    ///< sum of |b| of each column
};

}  // namespace greta::kernels
