#include "kernels/templates/gelu/gelu.hpp"

#include "kernels/reference/gelu.hpp"
#include "kernels/templates/common/elementwise.hpp"
#include "kernels/templates/common/work.hpp"

namespace greta::kernels {
namespace {

std::vector<TensorSpec> tensors(const Problem& problem) {
  const std::int64_t rows = problem.dim("rows"), cols = problem.dim("cols");
  return {{"x", Role::input, problem.dtype, rows, cols},
          {"out", Role::output, problem.out_dtype, rows, cols}};
}

/// 10 operations for an element, the exponential as one.
Work work(const Problem& problem) {
  return work_per_element(tensors(problem), problem, 10);
}

ElementwiseShape shape(const Problem& problem) {
  return flat_shape(problem.dim("rows") * problem.dim("cols"), 1);
}

Defines defines(const Problem& problem) {
  return {{"EXACT", problem.attribute("form", "tanh") == "erf" ? "1" : "0"}};
}

std::vector<Argument> arguments(const Problem& problem) {
  const auto count = static_cast<std::uint64_t>(problem.dim("rows") * problem.dim("cols"));
  return {OperandArgument{0}, OperandArgument{1}, count};
}

}  // namespace

KernelTemplate make_gelu() {
  KernelTemplate t;
  t.name = "gelu";
  t.summary = "activation x/2 (1 + erf(x / sqrt(2))), or its approximation with tanh";
  t.bound =
      "that of its evaluation in f32 (exp within 3 + 2|x| ulp and ten roundings), and the output's "
      "rounding";
  t.dimensions = {{"rows", "rows of x"}, {"cols", "columns of x"}};
  t.attributes = {
      {"form", "how it is defined", "tanh", {"tanh", "erf"}, "", nullptr, {}},
  };
  t.dtypes = converted_dtypes();
  t.sizes = {{4096, 11008}, {1, 11008}, {1000, 1001}};
  t.variants = {elementwise_variant(
      {"gelu/flat", "a thread takes ITEMS vectors of VEC neighbours, whatever row they are in",
       shape, defines, arguments})};
  t.work = work;
  t.tensors = tensors;
  t.input = random_activations;
  t.reference = gelu_reference;
  t.stand_in = fewer_rows;
  return t;
}

}  // namespace greta::kernels
