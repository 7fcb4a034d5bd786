#include <algorithm>

#include "kernels/operations.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/skeletons/elementwise.hpp"

namespace greta::kernels {
namespace {

std::vector<TensorSpec> tensors(const Problem& problem) {
  const std::int64_t rows = problem.dim("rows"), cols = problem.dim("cols");
  return {{"ids", Role::input, DType::i32, 1, cols},
          {"x", Role::input, problem.dtype, rows, problem.dim("width")},
          {"out", Role::output, problem.out_dtype, rows, cols}};
}

HostTensor input(const Problem& problem, const TensorSpec& spec, std::uint64_t seed) {
  if (spec.dtype != DType::i32) return random_tensor(spec, seed);
  return random_indices(spec, problem.dim("width") - 1, seed);
}

void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed) {
  mix_in_invalid_indices(inputs[0], problem.dim("width"), seed);
  mix_in_adversarial_rows(inputs[1], magnitudes_of(problem.dtype), seed);
  mix_in_special_values(inputs[1], seed);
}

/// Reads an element of x for each of out, at most all of them. No arithmetic.
Work work(const Problem& problem) {
  const std::int64_t rows = problem.dim("rows"), cols = problem.dim("cols");
  const std::int64_t read = rows * std::min(cols, problem.dim("width"));
  return {0, static_cast<double>(bytes_of(problem.dtype, read) +
                                 bytes_of(problem.out_dtype, rows * cols) +
                                 bytes_of(DType::i32, cols))};
}

ElementwiseShape shape(const Problem& problem) {
  ElementwiseShape shape = row_shape(problem, problem.dim("rows"), problem.dim("cols"), "cols");
  shape.arguments = {OperandArgument{0}, OperandArgument{1}, OperandArgument{2}};
  add_extents(shape.arguments, problem, {"rows", "width"});
  add_constants(shape.defines, problem, {"cols"});
  shape.default_width = 2;  // what is loaded has no neighbours
  return shape;
}

}  // namespace

Operation make_gather_columns() {
  Operation t;
  t.name = "gather_columns";
  t.summary = "columns of a matrix that ids name, e.g. in another order";
  t.bound = "none where types agree, else the output's rounding";
  t.out_of_range = "an id below 0, or not below width, gives a column of NaN";
  t.dimensions = {run_time_rows("rows of x and out"),
                  {.name = "width", .help = "columns of x"},
                  {.name = "cols", .help = "ids, and columns of out"}};
  t.dtypes = converted_dtypes();
  t.sizes = {{{1, 4096, 4096}}, {{512, 4096, 4096}}, {{37, 300, 81}}};
  set_elementwise(t, "gather_columns/columns",
                  "a thread takes ITEMS vectors of VEC neighbours of out, after their ids", shape);
  t.work = work;
  t.tensors = tensors;
  t.input = input;
  t.harden = harden;
  t.reference = gather_columns_reference;
  t.stand_in = fewer_rows;
  return t;
}

}  // namespace greta::kernels
