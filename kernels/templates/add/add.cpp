#include "kernels/operations.hpp"
#include "kernels/planning/operand_work.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/skeletons/elementwise.hpp"

namespace greta::kernels {
namespace {

std::vector<TensorSpec> tensors(const Problem& problem) {
  const std::int64_t rows = problem.dim("rows"), cols = problem.dim("cols");
  return {{"A", Role::input, problem.dtype, rows, cols},
          {"B", Role::input, problem.dtype, rows, cols},
          {"C", Role::output, problem.out_dtype, rows, cols}};
}

Work work(const Problem& problem) {
  return work_per_element(tensors(problem), problem, 1);
}

ElementwiseShape shape(const Problem& problem) {
  const std::int64_t count = problem.dim("rows") * problem.dim("cols");
  ElementwiseShape shape = flat_shape(problem, count);
  shape.arguments = {OperandArgument{0}, OperandArgument{1}, OperandArgument{2},
                     static_cast<std::uint64_t>(count)};
  return shape;
}

}  // namespace

Operation make_add() {
  Operation t;
  t.name = "add";
  t.summary = "sum of two matrices, C = A + B";
  t.bound = "one f32 addition, 2^-24 of the sum, and the output's rounding";
  t.dimensions = {run_time_rows("rows of C"), {.name = "cols", .help = "columns of C"}};
  t.dtypes = converted_dtypes();
  t.sizes = {{{16384, 4096}}, {{1, 4096}}, {{1000, 1001}}};
  set_elementwise(t, "add/flat",
                  "a thread takes ITEMS vectors of VEC neighbours, whatever row they are in",
                  shape);
  t.work = work;
  t.tensors = tensors;
  t.reference = add_reference;
  t.stand_in = fewer_rows;
  return t;
}

}  // namespace greta::kernels
