#include <string>

#include "kernels/operations.hpp"
#include "kernels/planning/operand_work.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/skeletons/elementwise.hpp"

namespace greta::kernels {
namespace {

bool packed(const Problem& problem) {
  return problem.attribute("layout", "separate") == "packed";
}

std::vector<TensorSpec> tensors(const Problem& problem) {
  const std::int64_t rows = problem.dim("rows"), cols = problem.dim("cols");
  const TensorSpec out{"out", Role::output, problem.out_dtype, rows, cols};
  if (packed(problem)) return {{"x", Role::input, problem.dtype, rows, 2 * cols}, out};
  return {{"gate", Role::input, problem.dtype, rows, cols},
          {"up", Role::input, problem.dtype, rows, cols},
          out};
}

/// 5 operations per element; the exponential counts as one.
Work work(const Problem& problem) {
  return work_per_element(tensors(problem), problem, 5);
}

ElementwiseShape shape(const Problem& problem) {
  const std::int64_t rows = problem.dim("rows"), cols = problem.dim("cols");
  const auto count = static_cast<std::uint64_t>(rows * cols);
  ElementwiseShape shape =
      packed(problem) ? row_shape(problem, rows, cols, "cols") : flat_shape(problem, rows * cols);
  shape.defines = {{"GAP", packed(problem) ? std::to_string(cols) : "0"}};
  shape.arguments = {OperandArgument{0}, OperandArgument{1}};
  if (!packed(problem)) shape.arguments.emplace_back(OperandArgument{2});
  shape.arguments.emplace_back(count);
  return shape;
}

}  // namespace

Operation make_silu_mul() {
  Operation t;
  t.name = "silu_mul";
  t.summary = "gated activation, out = silu(gate) * up";
  t.bound =
      "that of silu's evaluation in f32 times |up|, 2^-24 for the product, and the output's "
      "rounding";
  t.dimensions = {run_time_rows("rows of out"), {.name = "cols", .help = "columns of out"}};
  t.attributes = {
      {.name = "layout",
       .help = "gate and up: separate tensors, or packed into one whose rows hold gate, then up",
       .fallback = "separate",
       .allowed = {"separate", "packed"}},
  };
  t.dtypes = converted_dtypes();
  t.sizes = {{{4096, 11008}}, {{1, 11008}}, {{1000, 1001}}};
  set_elementwise(t, "silu_mul/flat",
                  "a thread takes ITEMS vectors of VEC neighbours, whatever row they are in",
                  shape);
  t.work = work;
  t.tensors = tensors;
  t.input = random_activations;
  t.reference = silu_mul_reference;
  t.stand_in = fewer_rows;
  return t;
}

}  // namespace greta::kernels
