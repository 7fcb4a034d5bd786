#pragma once

#include <cstdint>
#include <vector>

#include "kernels/model/tensor.hpp"
#include "kernels/reference/gemm_error.hpp"
#include "kernels/reference/product_operands.hpp"

namespace greta::kernels {

/// Returns the operands of a GEMM problem.
ProductOperands gemm_operands(const Problem& problem, const std::vector<HostTensor>& inputs);

/// The inputs of a GEMM problem for its reference, and the terms of its epilogue.
class GemmData {
 public:
  /// `inputs`: those beside the operands.
  GemmData(const Problem& problem, const std::vector<HostTensor>& inputs, ProductOperands operands);

  /// Returns `count` elements of a row of op(A) from `first` on, after the prologue.
  std::vector<double> a_row(std::int64_t row, std::int64_t first, std::int64_t count) const;
  const ProductOperand& a() const { return operands_.a; }
  const ProductOperand& b() const { return operands_.b; }

  /// Returns whether all elements of the operands and their scales are finite.
  bool finite() const { return finite_; }

  /// Returns all terms of a column of the product except the product itself.
  GemmTerms terms(std::int64_t row, std::int64_t col) const;

  Expected element(std::int64_t row, std::int64_t col) const;

  GemmErrorModel model;
  std::int64_t m, n, k;

 private:
  /// Returns the terms of a column of the product.
  GemmTerms all_terms(std::int64_t row, std::int64_t col) const;
  /// Computes what a norm in front of the product needs.
  void prepare_norm(const Problem& problem, const HostTensor& weight);

  ProductOperands operands_;
  HostTensor bias_, residual_, old_;
  bool finite_ = true;
  // With a norm only:
  std::vector<double> weight_;
  std::vector<double> factors_;  ///< of each row
  std::vector<double> sizes_;    ///< sum of |b| of each column
};

}  // namespace greta::kernels
