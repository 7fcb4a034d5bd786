#include "kernels/reference/gemm_data.hpp"

#include <Eigen/Core>
#include <cmath>
#include <cstdlib>
#include <string>

#include "kernels/model/weight_panels.hpp"
#include "kernels/reference/rows.hpp"

namespace greta::kernels {

ProductOperands gemm_operands(const Problem& problem, const std::vector<HostTensor>& inputs) {
  const std::string layout = problem.attribute("layout", "nn");
  HostTensor a = packed(tensor_named(inputs, "A")), b = packed(tensor_named(inputs, "B"));
  if (problem.attribute("packing", "rows") == "panels") {
    const auto row_bytes = static_cast<std::int64_t>(bytes_of(b.spec.dtype, problem.dim("k")));
    b.data = rows_of_panels(b.data, row_bytes);
  }
  ProductOperands operands;
  operands.a.lines = layout.front() == 'n' ? rows_of(std::move(a)) : columns_of(a);
  operands.b.lines = layout.back() == 't' ? rows_of(std::move(b)) : columns_of(b);
  return operands;
}

GemmData::GemmData(const Problem& problem, const std::vector<HostTensor>& inputs,
                   ProductOperands operands)
    : model(problem),
      m(problem.dim("m")),
      n(problem.dim("n")),
      k(problem.dim("k")),
      operands_(std::move(operands)) {
  model.allow(operands_.of_norm, operands_.least);
  if (model.has_bias()) bias_ = tensor_named(inputs, "bias");
  if (model.has_residual()) residual_ = packed(tensor_named(inputs, "residual"));
  if (model.has_old()) old_ = packed(tensor_named(inputs, "C"));
  finite_ = a().finite(m, k) && b().finite(model.gated() ? 2 * n : n, k);
  if (model.has_norm()) prepare_norm(problem, tensor_named(inputs, "weight"));
}

void GemmData::prepare_norm(const Problem& problem, const HostTensor& weight) {
  const auto length = static_cast<std::size_t>(k);
  weight_.resize(length);
  load_elements(weight.spec.dtype, weight.data.data(), 0, length, weight_.data());
  const double epsilon = std::strtof(problem.attribute("epsilon", "1e-5").c_str(), nullptr);
  const auto of_lines = [&](const ProductOperand& operand, std::int64_t count, auto value) {
    return rows::for_each_row(count, [&](std::int64_t i) {
      Eigen::VectorXd line(k);
      operand.read(i, 0, k, line.data());
      return value(line);
    });
  };
  factors_ = of_lines(a(), m, [&](const Eigen::VectorXd& row) {
    return 1 / std::sqrt(row.squaredNorm() / static_cast<double>(k) + epsilon);
  });
  sizes_ = of_lines(b(), model.gated() ? 2 * n : n,
                    [](const Eigen::VectorXd& column) { return column.cwiseAbs().sum(); });
}

std::vector<double> GemmData::a_row(std::int64_t row, std::int64_t first,
                                    std::int64_t count) const {
  std::vector<double> values(static_cast<std::size_t>(count));
  a().read(row, first, count, values.data());
  for (std::size_t i = 0; model.has_norm() && i < values.size(); ++i) {
    values[i] *=
        weight_[static_cast<std::size_t>(first) + i] * factors_[static_cast<std::size_t>(row)];
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
  Eigen::Map<Eigen::VectorXd> of_row(of_a.data(), k);
  Eigen::VectorXd column(k);
  b().read(col, 0, k, column.data());
  t.product = of_row.dot(column);
  a().square(row, 0, k, of_a.data());
  b().square(col, 0, k, column.data());
  t.norm = std::sqrt(of_row.dot(column));
  return t;
}

Expected GemmData::element(std::int64_t row, std::int64_t col) const {
  const GemmTerms t = all_terms(row, col);
  return model.gated() ? model.expect(t, all_terms(row, n + col)) : model.expect(t);
}

}  // namespace greta::kernels
