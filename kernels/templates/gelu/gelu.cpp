#include "kernels/operations.hpp"
#include "kernels/planning/operand_work.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/skeletons/elementwise.hpp"

namespace greta::kernels {
namespace {

std::vector<TensorSpec> tensors(const Problem& problem) {
  const std::int64_t rows = problem.dim("rows"), cols = problem.dim("cols");
  return {{"x", Role::input, problem.dtype, rows, cols},
          {"out", Role::output, problem.out_dtype, rows, cols}};
}

/// 10 operations per element; the exponential counts as one.
Work work(const Problem& problem) {
  return work_per_element(tensors(problem), problem, 10);
}

ElementwiseShape shape(const Problem& problem) {
  const std::int64_t count = problem.dim("rows") * problem.dim("cols");
  ElementwiseShape shape = flat_shape(problem, count);
  shape.defines = {{"EXACT", problem.attribute("form", "tanh") == "erf" ? "1" : "0"}};
  shape.arguments = {OperandArgument{0}, OperandArgument{1}, static_cast<std::uint64_t>(count)};
  return shape;
}

}  // namespace

Operation make_gelu() {
  Operation t;
  t.name = "gelu";
  t.summary = "activation x/2 (1 + erf(x / sqrt(2))), or its approximation with tanh";
  t.bound =
      "that of its evaluation in f32 (exp within 3 + 2|x| ulp and ten roundings), and the output's "
      "rounding";
  t.dimensions = {run_time_rows("rows of x"), {.name = "cols", .help = "columns of x"}};
  t.attributes = {
      {.name = "form", .help = "how it is defined", .fallback = "tanh", .allowed = {"tanh", "erf"}},
  };
  t.dtypes = converted_dtypes();
  t.sizes = {{{4096, 11008}}, {{1, 11008}}, {{1000, 1001}}};
  set_elementwise(t, "gelu/flat",
                  "a thread takes ITEMS vectors of VEC neighbours, whatever row they are in",
                  shape);
  t.work = work;
  t.tensors = tensors;
  t.input = random_activations;
  t.reference = gelu_reference;
  t.stand_in = fewer_rows;
  return t;
}

}  // namespace greta::kernels
