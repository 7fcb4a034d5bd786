#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "kernels/model/reference.hpp"
#include "runtime/pipeline/llama/trace_bounds.hpp"
#include "runtime/pipeline/llama/trace_check.hpp"

/// What the checks of stages have in common.
namespace greta::runtime {

/// Throws Error unless a stage of a trace has this shape.
void require_shape(const TraceMatrix& matrix, std::int64_t rows, std::int64_t cols,
                   std::int64_t layer, LlamaStage stage);

using ExpectedAt = std::function<Expected(std::int64_t row, std::int64_t col)>;

/// Returns the finding on the element that is closest to its bound.
StageFinding judge(std::int64_t layer, LlamaStage stage, const TraceMatrix& got,
                   const ExpectedAt& expected);

/// The products of rows and a matrix.
struct Products {
  TraceMatrix values, norms;
  double relative = 0;
  /// Of a scaled matrix, whose rows are quantised, or of one whose weights are rounded.
  TraceMatrix errors{};

  TracedProduct at(std::int64_t row, std::int64_t col) const {
    return {values.row(row)[col], norms.row(row)[col], relative,
            errors.empty() ? 0 : errors.row(row)[col]};
  }
  /// Adds the errors of matrix cores that add products of fp8 with 13 bits, which
  /// scaled_gemm_reference() states. Sums of integers are exact.
  void add_matrix_cores(const ScaledFormat& format);
};

/// Rows that are multiplied by weights. What computes them in the launch that also multiplies or
/// quantises them leaves an error.
struct Factor {
  TraceMatrix rows;
  double of_products = 0;  ///< relative, of products with a whole row
  double of_elements = 0;  ///< relative, of each element
};

/// Multiplies rows as devices do.
Products products_of(const stages::Weights& weights, const WeightView& matrix, const Factor& x);

}  // namespace greta::runtime
