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
  if (rows::has(list, "weight")) list.push_back(rows::first_row(problem, "gain"));
  list.push_back(rows::matrix(problem, "Y", Role::output));
  return list;
}

/// Operations per element: the layer norm's sum, difference, square, sum of squares, difference and
/// product; weight and bias; then square, sum of squares, product and gain.
Work work(const Problem& problem) {
  const auto operands = tensors(problem);
  return work_per_element(
      operands, problem,
      9.0 + (rows::has(operands, "weight") ? 2 : 0) + (rows::has(operands, "bias") ? 1 : 0));
}

std::vector<Problem> parts(const Problem& problem) {
  Problem first = problem, second = problem;
  first.op = "layernorm";
  first.out_dtype = problem.dtype;
  second.op = "rmsnorm";
  // Without the bias alone, the second norm has its gain.
  std::erase_if(second.attributes, [](const auto& attribute) {
    return attribute.first == "affine" && attribute.second != "none";
  });
  return {first, second};
}

}  // namespace

Operation make_layernorm_rmsnorm() {
  Operation t = rows::start_template(
      {"layernorm_rmsnorm", tensors, nullptr, rows::epsilon, 3, 2, false},
      {rows::affine_attribute("what scales and shifts", {"weight_bias", "weight", "none"}),
       rows::epsilon_attribute()});
  t.summary = "rmsnorm of the layer norm of each row, Y = rmsnorm(layernorm(X)) * gain";
  t.bound =
      "the layer norm's bound e of each element y, and half of 2 mean(|y| e) / (mean(y^2) + "
      "epsilon) + (11 + 2 m + 5) u for the second root, m = 17 + max(8, cols / 256) merges of "
      "partial sums, and 6u for it and the products; u = 2^-24; the output's rounding";
  t.work = work;
  t.harden = rows::harden_norm;
  t.parts = parts;
  t.reference = layernorm_rmsnorm_reference;
  return t;
}

}  // namespace greta::kernels
