#include "kernels/reference/gemm_data.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "kernels/model/parallel.hpp"
#include "kernels/model/weight_panels.hpp"

namespace greta::kernels {
namespace {

/// Returns a stored matrix row after row, or column after column.
std::vector<float> load_matrix(const HostTensor& source, bool by_columns) {
  const std::int64_t rows = source.spec.rows, cols = source.spec.cols;
  std::vector<float> values(static_cast<std::size_t>(rows * cols));
  parallel_parts(rows, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t r = first; r < last; ++r) {
      for (std::int64_t c = 0; c < cols; ++c) {
        const std::int64_t at = by_columns ? c * rows + r : r * cols + c;
        values[static_cast<std::size_t>(at)] =
            static_cast<float>(source.at(static_cast<std::size_t>(r * cols + c)));
      }
    }
  });
  return values;
}

}  // namespace

GemmData::GemmData(const Problem& problem, const std::vector<HostTensor>& inputs,
                   const ProductScales* scales)
    : model(problem), m(problem.dim("m")), n(problem.dim("n")), k(problem.dim("k")) {
  const std::string layout = problem.attribute("layout", "nn");
  a_ = load_matrix(packed(tensor_named(inputs, "A")), layout.front() == 't');
  HostTensor stored = packed(tensor_named(inputs, "B"));
  if (problem.op == "gemm" && problem.attribute("packing", "rows") == "panels") {
    const auto row_bytes = static_cast<std::int64_t>(bytes_of(stored.spec.dtype, k));
    stored.data = rows_of_panels(stored.data, row_bytes);
  }
  b = load_matrix(stored, layout.back() == 'n');
  if (model.has_bias()) bias_ = tensor_named(inputs, "bias");
  if (model.has_residual()) residual_ = packed(tensor_named(inputs, "residual"));
  if (model.has_old()) old_ = packed(tensor_named(inputs, "C"));
  if (scales != nullptr) {
    scales_ = *scales;
    model.allow(scales_.of_norm, scales_.least);
  }
  const auto is_finite = [](float x) { return std::isfinite(x); };
  for (const std::vector<float>* values : {&a_, &b, &scales_.a.values, &scales_.b.values}) {
    finite_ = finite_ && std::all_of(values->begin(), values->end(), is_finite);
  }
  if (!model.has_norm()) return;
  weight_ = load_matrix(tensor_named(inputs, "weight"), false);
  const double epsilon = std::strtof(problem.attribute("epsilon", "1e-5").c_str(), nullptr);
  for (auto row = a_.begin(); row != a_.end(); row += k) {
    double squares = 0;
    std::for_each(row, row + k, [&](double x) { squares += x * x; });
    factors_.push_back(1 / std::sqrt(squares / static_cast<double>(k) + epsilon));
  }
  for (auto column = b.begin(); column != b.end(); column += k) {
    double size = 0;
    std::for_each(column, column + k, [&](double x) { size += std::abs(x); });
    sizes_.push_back(size);
  }
}

std::vector<double> GemmData::a_row(std::int64_t row, std::int64_t first,
                                    std::int64_t count) const {
  const auto begin = a_.begin() + row * k + first;
  std::vector<double> values(begin, begin + count);
  for (std::size_t i = 0; model.has_norm() && i < values.size(); ++i) {
    values[i] *=
        weight_[static_cast<std::size_t>(first) + i] * factors_[static_cast<std::size_t>(row)];
  }
  for (std::size_t i = 0; !scales_.a.values.empty() && i < values.size(); ++i) {
    values[i] *= scales_.a.at(row, first + static_cast<std::int64_t>(i));
  }
  return values;
}

GemmTerms GemmData::terms(std::int64_t row, std::int64_t col) const {
  GemmTerms t;
  if (model.has_bias()) t.bias = bias_.at(static_cast<std::size_t>(col));
  if (model.has_residual()) t.residual = residual_.at(static_cast<std::size_t>(row * n + col));
  if (model.has_old()) t.old = old_.at(static_cast<std::size_t>(row * n + col));
  if (model.has_norm()) {
    t.factor = factors_[static_cast<std::size_t>(row)];
    t.size = sizes_[static_cast<std::size_t>(col)];
  }
  return t;
}

GemmTerms GemmData::all_terms(std::int64_t row, std::int64_t col) const {
  GemmTerms t = terms(row, col);
  std::vector<double> of_a = a_row(row, 0, k);
  std::vector<double> of_b(b.begin() + col * k, b.begin() + (col + 1) * k);
  Eigen::Map<Eigen::VectorXd> a(of_a.data(), k), column(of_b.data(), k);
  scale_column(col, 0, column);
  t.product = a.dot(column);
  square_row(row, 0, a);
  square_column(col, 0, column);
  t.norm = std::sqrt(a.dot(column));
  return t;
}

Expected GemmData::element(std::int64_t row, std::int64_t col) const {
  const GemmTerms t = all_terms(row, col);
  return model.gated() ? model.expect(t, all_terms(row, n + col)) : model.expect(t);
}

}  // namespace greta::kernels
