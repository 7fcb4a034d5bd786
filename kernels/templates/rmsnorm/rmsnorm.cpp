#include "kernels/operations.hpp"
#include "kernels/planning/operand_work.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/skeletons/norms.hpp"
#include "kernels/skeletons/rows.hpp"

namespace greta::kernels {
namespace {

std::vector<TensorSpec> tensors(const Problem& problem) {
  std::vector<TensorSpec> list{rows::matrix(problem, "X", Role::input)};
  rows::add_affine(list, problem, "weight");
  list.push_back(rows::matrix(problem, "Y", Role::output));
  return list;
}

/// Operations per element: square, sum of squares and products.
Work work(const Problem& problem) {
  const auto operands = tensors(problem);
  return work_per_element(operands, problem, rows::has(operands, "weight") ? 4 : 3);
}

}  // namespace

Operation make_rmsnorm() {
  Operation t =
      rows::start_template({"rmsnorm", tensors, nullptr, rows::epsilon, 1, 1},
                           {rows::affine_attribute("whether there is a weight", {"weight", "none"}),
                            rows::epsilon_attribute()});
  t.summary = "root mean square norm of each row, Y = X / sqrt(mean(X^2) + epsilon) * weight";
  t.bound =
      "half of (11 + 2 m + 5) u for the root, m = 17 + max(8, cols / 256) merges of partial sums, "
      "and 6u for it and the products, of the element; u = 2^-24; the output's rounding";
  t.work = work;
  t.harden = rows::harden_norm;
  t.reference = rmsnorm_reference;
  return t;
}

}  // namespace greta::kernels
