#include <algorithm>
#include <iterator>
#include <limits>
#include <random>
#include <vector>

#include "kernels/model/random.hpp"
#include "kernels/operations.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/operand_work.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/skeletons/elementwise.hpp"

namespace greta::kernels {
namespace {

std::vector<TensorSpec> tensors(const Problem& problem) {
  const std::int64_t tokens = problem.dim("tokens"), rows = problem.dim("rows");
  const std::int64_t top_k = problem.dim("top_k"), dim = problem.dim("dim");
  return {{"y", Role::input, problem.dtype, rows, dim},
          {"places", Role::input, DType::i32, tokens, top_k},
          {"weights", Role::input, DType::f32, tokens, top_k},
          {"out", Role::output, problem.out_dtype, tokens, dim}};
}

/// Weights whose sizes add up to 1 at most, so that sums stay in the range of the rows.
HostTensor input(const Problem& problem, const TensorSpec& spec, std::uint64_t seed) {
  if (spec.name == "places") return random_indices(spec, problem.dim("rows") - 1, seed);
  HostTensor tensor = random_tensor(spec, seed);
  const auto top_k = static_cast<double>(problem.dim("top_k"));
  for (std::size_t i = 0; spec.name == "weights" && i < spec.elements(); ++i) {
    store_element(spec.dtype, tensor.data.data(), i, 2 * tensor.at(i) / top_k);
  }
  return tensor;
}

/// Weights of 0 and of NaN.
void harden_weights(HostTensor& weights, std::uint64_t seed) {
  std::mt19937_64 random(mix64(seed));
  const double values[] = {0, -0.0, std::numeric_limits<double>::quiet_NaN()};
  for (std::size_t i = 0; i < weights.spec.elements(); ++i) {
    const std::uint64_t kind = uniform_below(random, 32);
    if (kind < std::size(values)) store_element(DType::f32, weights.data.data(), i, values[kind]);
  }
}

/// Rows that no place has are NaN.
void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed) {
  HostTensor &y = inputs[0], &places = inputs[1];
  mix_in_adversarial_rows(y, magnitudes_of(problem.dtype), seed);
  mix_in_invalid_indices(places, problem.dim("rows"), seed);
  harden_weights(inputs[2], seed);
  std::vector<bool> used(static_cast<std::size_t>(y.spec.rows));
  for (std::size_t i = 0; i < places.spec.elements(); ++i) {
    const double place = places.at(i);
    if (place >= 0 && place < static_cast<double>(used.size())) {
      used[static_cast<std::size_t>(place)] = true;
    }
  }
  for (std::size_t i = 0; i < y.spec.elements(); ++i) {
    if (used[i / static_cast<std::size_t>(y.spec.cols)]) continue;
    store_element(y.spec.dtype, y.data.data(), i, std::numeric_limits<double>::quiet_NaN());
  }
}

Result<void> check(const Problem& problem) {
  return check_count(problem, "tokens", {"tokens", "top_k"});
}

/// A multiplication and an addition for each element of a row that is read. At most all rows are.
Work work(const Problem& problem) {
  auto list = tensors(problem);
  const std::int64_t read = problem.dim("tokens") * problem.dim("top_k");
  list[0].rows = std::min(list[0].rows, read);
  return {2 * static_cast<double>(read) * static_cast<double>(problem.dim("dim")),
          operand_bytes(list)};
}

/// The ITEMS of a thread are vectors of different rows.
ElementwiseShape shape(const Problem& problem) {
  const std::int64_t tokens = problem.dim("tokens"), dim = problem.dim("dim");
  const std::int64_t top_k = problem.dim("top_k");
  ElementwiseShape shape = row_shape(problem, tokens, dim, "dim");
  shape.arguments = {OperandArgument{0}, OperandArgument{1}, OperandArgument{2},
                     OperandArgument{3}};
  add_extents(shape.arguments, problem, {"tokens", "rows", "top_k"});
  add_constants(shape.defines, problem, {"dim"});
  shape.workgroups = [=](const Config& c) {
    return ceil_div(tokens * (dim / c["VEC"]), std::int64_t{c["THREADS"]});
  };
  shape.divisions = [=](const Config& c) -> std::vector<Division> {
    return {{"top_k", top_k, c["ITEMS"], "ITEMS"},
            {"threads", tokens * (dim / c["VEC"]), c["THREADS"], "THREADS"}};
  };
  shape.rounds = [=](const Config& c) { return ceil_div(top_k, std::int64_t{c["ITEMS"]}); };
  return shape;
}

}  // namespace

Operation make_unpermute() {
  Operation t;
  t.name = "unpermute";
  t.summary = "the weighted sum of each token's top_k rows, wherever they are in y";
  t.bound = "u (top_k + 1) times the sum of |w y|, u = 2^-24; the output's rounding";
  t.out_of_range = "a place below 0, or not below rows, adds nothing";
  t.dimensions = {run_time_tokens("rows of out"),
                  {.name = "rows", .help = "rows of y", .at_run_time = RunTimeExtent{}},
                  {.name = "top_k",
                   .help = "rows of y for each token",
                   .most = 64,
                   .examples = {1, 2, 4, 6, 8, 10}},
                  {.name = "dim", .help = "columns of y and out"}};
  t.dtypes = converted_dtypes();
  t.sizes = {{{4096, 32768, 8, 7168}}, {{1, 8, 8, 7168}}, {{64, 1000, 2, 4096}}, {{33, 90, 3, 81}}};
  set_elementwise(t, "unpermute/rows",
                  "a thread takes a vector of a token, and those of ITEMS rows at a time", shape);
  t.check = check;
  t.work = work;
  t.tensors = tensors;
  t.input = input;
  t.harden = harden;
  t.reference = unpermute_reference;
  t.stand_in = fewer_tokens;
  return t;
}

}  // namespace greta::kernels
