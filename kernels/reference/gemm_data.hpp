#pragma once

#include <cstdint>
#include <vector>

#include "kernels/model/tensor.hpp"
#include "kernels/reference/gemm_error.hpp"

namespace greta::kernels {

/// The inputs of a GEMM problem for its reference, and the terms of its epilogue.
class GemmData {
 public:
  GemmData(const Problem& problem, const std::vector<HostTensor>& inputs);

  /// Returns `count` elements of a row of op(A) from `first` on, after the prologue.
  std::vector<double> a_row(std::int64_t row, std::int64_t first, std::int64_t count) const;

  /// Returns all terms of a column of the product except the product itself.
  GemmTerms terms(std::int64_t row, std::int64_t col) const;

  Expected element(std::int64_t row, std::int64_t col) const;

  GemmErrorModel model;
  std::int64_t m, n, k;
  /// op(B), column after column. f32, f16 and bf16 inputs are exact in f32.
  std::vector<float> b;

 private:
  /// Returns the terms of a column of the product.
  GemmTerms all_terms(std::int64_t row, std::int64_t col) const;

  std::vector<float> a_;  ///< op(A) without the prologue, row after row
  HostTensor bias_, residual_, old_;
  // With a norm only:
  std::vector<float> weight_;
  std::vector<double> factors_;  ///< of each row
  std::vector<double> sizes_;    ///< sum of |b| of each column
};

}  // namespace greta::kernels
