#include <fmt/format.h>

#include <algorithm>

#include "kernels/operations.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/stride_attributes.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/skeletons/elementwise.hpp"

namespace greta::kernels {
namespace {

bool half(const Problem& problem) {
  return problem.attribute("style", "interleaved") == "half";
}

bool in_place(const Problem& problem) {
  return problem.attribute("place", "out") == "in";
}

std::int64_t packed_stride(const Problem& problem) {
  return problem.dim("heads") * problem.dim("dim");
}

/// A row of x is one head, or one token if the tokens are strided.
std::vector<TensorSpec> tensors(const Problem& problem) {
  const std::int64_t tokens = problem.dim("tokens"), dim = problem.dim("dim");
  const std::int64_t rows = tokens * problem.dim("heads");
  const std::int64_t stride = problem.stride("x_stride", packed_stride(problem));
  const Role role = in_place(problem) ? Role::input_output : Role::input;
  TensorSpec x{"x", role, problem.dtype, rows, dim};
  if (stride > 0) x = {"x", role, problem.dtype, tokens, packed_stride(problem), stride};
  std::vector<TensorSpec> list{
      x,
      {"positions", Role::input, DType::i32, 1, tokens},
      {"table", Role::input, DType::f32, problem.dim("positions"), dim, 0, true},
  };
  if (!in_place(problem)) list.push_back({"out", Role::output, problem.out_dtype, rows, dim});
  return list;
}

HostTensor input(const Problem& problem, const TensorSpec& spec, std::uint64_t seed) {
  if (spec.dtype != DType::i32) return random_tensor(spec, seed);
  return random_indices(spec, problem.dim("positions") - 1, seed);
}

void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed) {
  mix_in_adversarial_rows(inputs[0], magnitudes_of(problem.dtype), seed);
  mix_in_special_values(inputs[0], seed);
  mix_in_invalid_indices(inputs[1], problem.dim("positions"), seed);
}

Result<void> check(const Problem& problem) {
  if (const auto pairs = check_pairs(problem); !pairs) return pairs;
  return check_count(problem, "heads", {"tokens", "heads"});
}

/// x is read and written, and one row of the table is read per token, at most all rows. 3
/// operations per element.
Work work(const Problem& problem) {
  const auto tokens = problem.dim("tokens"), dim = problem.dim("dim");
  const auto elements = static_cast<double>(tokens * problem.dim("heads") * dim);
  const auto angles = static_cast<double>(std::min(tokens, problem.dim("positions")) * dim);
  return {3 * elements, bytes_of(problem.dtype, elements) + bytes_of(problem.out_dtype, elements) +
                            bytes_of(DType::f32, angles) +
                            bytes_of(DType::i32, static_cast<double>(tokens))};
}

/// The ITEMS of a thread are vectors of different heads.
ElementwiseShape shape(const Problem& problem) {
  const std::int64_t tokens = problem.dim("tokens"), heads = problem.dim("heads");
  const std::int64_t run = problem.dim("dim") / (half(problem) ? 2 : 1);
  ElementwiseShape shape =
      row_shape(problem, tokens * heads, run, half(problem) ? "dim / 2" : "dim");
  const auto x = stride_define(shape.strides, "x_stride", packed_stride(problem));
  shape.defines = {
      {"HALF", half(problem) ? "1" : "0"}, x, {"OUT_STRIDE", in_place(problem) ? x.second : "0"}};
  shape.arguments = {OperandArgument{0}, OperandArgument{1}, OperandArgument{2},
                     OperandArgument{in_place(problem) ? std::size_t{0} : std::size_t{3}}};
  add_extents(shape.arguments, problem, {"tokens", "positions"});
  add_constants(shape.defines, problem, {"heads", "dim"});
  shape.least_width = half(problem) ? 1 : 2;
  shape.most_items = heads;
  shape.items_name = "heads";
  shape.workgroups = [=](const Config& c) {
    return ceil_div(tokens * ceil_div(heads, c["ITEMS"]) * (run / c["VEC"]), c["THREADS"]);
  };
  shape.divisions = [=](const Config& c) -> std::vector<Division> {
    return {{"heads", heads, c["ITEMS"], "ITEMS", never},
            {"threads", tokens * ceil_div(heads, c["ITEMS"]) * (run / c["VEC"]), c["THREADS"],
             "THREADS"}};
  };
  return shape;
}

}  // namespace

Operation make_rope() {
  Operation t;
  t.name = "rope";
  t.summary = "rotary position embedding, by a table of cosines and sines";
  t.bound = "two roundings of 2^-24 of |a cos| + |b sin|, and the output's rounding";
  t.out_of_range = "a token whose position is below 0, or not below positions, becomes NaN";
  t.dimensions = {run_time_tokens("tokens of x"),
                  {.name = "heads", .help = "heads of a token"},
                  {.name = "dim",
                   .help = "elements of a head, even",
                   .least = 2,
                   .most = 2147483646,
                   .examples = {2, 6, 64, 80, 128, 40}},
                  {.name = "positions",
                   .help = "positions that the table has",
                   .fallback = "4096",
                   .examples = {1, 7, 300}}};
  t.attributes = {
      {.name = "style",
       .help = "elements of a pair: 2i and 2i + 1, or i and i + dim / 2",
       .fallback = "interleaved",
       .allowed = {"interleaved", "half"}},
      {.name = "place",
       .help = "out: out-of-place; in: in-place, the result replaces x",
       .fallback = "out",
       .allowed = {"out", "in"}},
      stride_attribute("x_stride", "elements from one token of x to the next", "heads x dim",
                       packed_stride),
  };
  t.renamed = {{"output", "in_place", "place", "in"}, {"output", "new", "place", "out"}};
  for (const DType type : narrow_types()) t.dtypes.push_back({type, type});
  t.dtypes.push_back({DType::f32, DType::f32});
  t.sizes = {
      {{4096, 32, 128, 4096}}, {{1, 32, 128, 131072}}, {{100, 6, 80, 4096}}, {{7, 3, 6, 100}}};
  set_elementwise(
      t, "rope/heads",
      "a thread takes the same columns of ITEMS heads of a token, whose angles it reads once",
      shape);
  t.check = check;
  t.work = work;
  t.tensors = tensors;
  t.input = input;
  t.harden = harden;
  t.reference = rope_reference;
  t.stand_in = fewer_tokens;
  return t;
}

}  // namespace greta::kernels
