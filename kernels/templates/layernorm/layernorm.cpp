#include "kernels/operations.hpp"
#include "kernels/planning/operand_work.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/skeletons/norms.hpp"
#include "kernels/skeletons/rows.hpp"

namespace greta::kernels {
namespace {

std::vector<TensorSpec> tensors(const Problem& problem) {
  std::vector<TensorSpec> list{rows::matrix(problem, "X", Role::input)};
  rows::add_affine(list, problem, "weight_bias");
  list.push_back(rows::matrix(problem, "Y", Role::output));
  return list;
}

/// Operations per element: sum, difference, square, sum of squares, difference and product; weight
/// and bias.
Work work(const Problem& problem) {
  const auto operands = tensors(problem);
  return work_per_element(
      operands, problem,
      6.0 + (rows::has(operands, "weight") ? 1 : 0) + (rows::has(operands, "bias") ? 1 : 0));
}

}  // namespace

Operation make_layernorm() {
  Operation t = rows::start_template(
      {"layernorm", tensors, nullptr, rows::epsilon, 3, 1},
      {rows::affine_attribute("what scales and shifts", {"weight_bias", "weight", "none"}),
       rows::epsilon_attribute()});
  t.summary = "layer norm of each row, Y = (X - mean) / sqrt(variance + epsilon) * weight + bias";
  t.bound =
      "with D the farthest and A the average distance from the mean, m = 17 + max(8, cols / 256) "
      "merges of partial sums: (14 + m) u (A + D) + 2u D for an element's distance, half of (11 + "
      "2 m + 3) u + (4 + 2 m) u D A / variance and 8u for root and products, u for the bias; u = "
      "2^-24; the output's rounding";
  t.work = work;
  t.harden = rows::harden_norm;
  t.reference = layernorm_reference;
  return t;
}

}  // namespace greta::kernels
