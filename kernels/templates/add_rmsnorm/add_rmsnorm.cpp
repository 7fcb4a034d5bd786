#include "kernels/operations.hpp"
#include "kernels/planning/operand_work.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/skeletons/norms.hpp"
#include "kernels/skeletons/rows.hpp"

namespace greta::kernels {
namespace {

std::vector<TensorSpec> tensors(const Problem& problem) {
  std::vector<TensorSpec> list{rows::matrix(problem, "X", Role::input),
                               rows::matrix(problem, "residual", Role::input)};
  rows::add_affine(list, problem, "weight");
  list.push_back(rows::matrix(problem, "sum", Role::output));
  list.push_back(rows::matrix(problem, "Y", Role::output));
  return list;
}

/// Operations per element: sum, square, sum of squares and products.
Work work(const Problem& problem) {
  const auto operands = tensors(problem);
  return work_per_element(operands, problem, rows::has(operands, "weight") ? 5 : 4);
}

/// The sum is rounded to the output's type before it is normalised.
std::vector<Problem> parts(const Problem& problem) {
  Problem norm = problem;
  norm.op = "rmsnorm";
  norm.dtype = problem.out_dtype;
  return {{"add", problem.dtype, problem.out_dtype, {}, problem.dims}, norm};
}

}  // namespace

Operation make_add_rmsnorm() {
  Operation t =
      rows::start_template({"add_rmsnorm", tensors, nullptr, rows::epsilon, 1, 1},
                           {rows::affine_attribute("whether there is a weight", {"weight", "none"}),
                            rows::epsilon_attribute()});
  t.summary = "residual sum and its norm, sum = X + residual, Y = rmsnorm(sum)";
  t.bound =
      "of the sum u; of its norm half of (11 + 2 m + 5) u for the root, m = 17 + max(8, cols / "
      "256) merges of partial sums, and 7u for it and the products; u = 2^-24; the output's "
      "rounding";
  t.work = work;
  t.harden = rows::harden_norm;
  t.parts = parts;
  t.reference = add_rmsnorm_reference;
  return t;
}

}  // namespace greta::kernels
