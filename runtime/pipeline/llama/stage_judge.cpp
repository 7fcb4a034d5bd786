#include "runtime/pipeline/llama/stage_judge.hpp"

#include <fmt/format.h>

#include <cmath>

#include "runtime/device/result.hpp"

namespace greta::runtime {

void require_shape(const TraceMatrix& matrix, std::int64_t rows, std::int64_t cols,
                   std::int64_t layer, LlamaStage stage) {
  if (matrix.rows == rows && matrix.cols == cols &&
      matrix.values.size() == static_cast<std::size_t>(rows * cols)) {
    return;
  }
  throw Error(fmt::format("{}: the trace has {} x {} elements; by the model it must have {} x {}",
                          stage_place(layer, stage), matrix.rows, matrix.cols, rows, cols));
}

StageFinding judge(std::int64_t layer, LlamaStage stage, const TraceMatrix& got,
                   const ExpectedAt& expected) {
  StageFinding worst;
  double ratio = -1;
  bool has_nan = false;
  for (std::int64_t row = 0; row < got.rows; ++row) {
    for (std::int64_t col = 0; col < got.cols; ++col) {
      const Expected want = expected(row, col);
      const StageFinding one{layer,      stage,     false, row, col, got.row(row)[col],
                             want.value, want.bound};
      has_nan = has_nan || std::isnan(one.got);
      if (one.ratio() <= ratio) continue;
      ratio = one.ratio();
      worst = one;
    }
  }
  worst.passed = ratio <= 1;
  worst.has_nan = has_nan;
  return worst;
}

void Products::add_matrix_cores(const ScaledFormat& format) {
  if (format.numbers == ByteFormat::int8) return;
  for (std::size_t i = 0; i < errors.values.size(); ++i) {
    errors.values[i] += 24 * 0x1p-13 * norms.values[i];
  }
}

Products products_of(const stages::Weights& weights, const WeightView& matrix, const Factor& x) {
  Products products;
  if (!matrix.scaled || matrix.decoded) {
    products.relative = x.of_products;
    products.values = stages::multiply(weights, matrix, x.rows, &products.norms);
    const double rounding = weights.rounding_of_products(matrix);
    if (rounding > 0) products.errors = products.norms;
    for (double& error : products.errors.values) error *= rounding;
    return products;
  }
  const auto quantised = stages::quantised_rows(*matrix.scaled, x.rows, x.of_elements);
  products.values = stages::multiply(weights, matrix, quantised.values, &products.norms);
  products.errors = stages::multiply_sizes(weights, matrix, quantised.errors);
  products.add_matrix_cores(matrix.scaled->format);
  return products;
}

}  // namespace greta::runtime
