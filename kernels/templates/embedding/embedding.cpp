#include <algorithm>

#include "kernels/operations.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/skeletons/elementwise.hpp"

namespace greta::kernels {
namespace {

std::vector<TensorSpec> tensors(const Problem& problem) {
  const std::int64_t tokens = problem.dim("tokens"), dim = problem.dim("dim");
  return {{"ids", Role::input, DType::i32, 1, tokens},
          {"table", Role::input, problem.dtype, problem.dim("vocabulary"), dim, 0, true},
          {"out", Role::output, problem.out_dtype, tokens, dim}};
}

HostTensor input(const Problem& problem, const TensorSpec& spec, std::uint64_t seed) {
  if (spec.dtype != DType::i32) return random_tensor(spec, seed);
  return random_indices(spec, problem.dim("vocabulary") - 1, seed);
}

void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed) {
  mix_in_invalid_indices(inputs[0], problem.dim("vocabulary"), seed);
  mix_in_adversarial_rows(inputs[1], magnitudes_of(problem.dtype), seed);
  mix_in_special_values(inputs[1], seed);
}

/// Reads one row of the table per token, at most all rows. No arithmetic.
Work work(const Problem& problem) {
  const std::int64_t tokens = problem.dim("tokens"), dim = problem.dim("dim");
  const std::int64_t read = std::min(tokens, problem.dim("vocabulary")) * dim;
  return {0, static_cast<double>(bytes_of(problem.dtype, read) +
                                 bytes_of(problem.out_dtype, tokens * dim) +
                                 bytes_of(DType::i32, tokens))};
}

ElementwiseShape shape(const Problem& problem) {
  ElementwiseShape shape = row_shape(problem, problem.dim("tokens"), problem.dim("dim"), "dim");
  shape.arguments = {OperandArgument{0}, OperandArgument{1}, OperandArgument{2}};
  add_extents(shape.arguments, problem, {"tokens", "vocabulary"});
  add_constants(shape.defines, problem, {"dim"});
  return shape;
}

}  // namespace

Operation make_embedding() {
  Operation t;
  t.name = "embedding";
  t.summary = "rows of a table that ids name";
  t.bound = "none where types agree, else the output's rounding";
  t.out_of_range = "an id below 0, or not below vocabulary, gives a row of NaN";
  t.dimensions = {run_time_tokens("ids"),
                  {.name = "vocabulary", .help = "rows of the table"},
                  {.name = "dim", .help = "its columns"}};
  t.dtypes = converted_dtypes();
  t.sizes = {{{4096, 128256, 4096}}, {{1, 128256, 4096}}, {{100, 1000, 1001}}};
  set_elementwise(t, "embedding/gather",
                  "a thread takes ITEMS vectors of VEC neighbours, after the ids of their rows",
                  shape);
  t.work = work;
  t.tensors = tensors;
  t.input = input;
  t.harden = harden;
  t.reference = embedding_reference;
  t.stand_in = fewer_tokens;
  return t;
}

}  // namespace greta::kernels
