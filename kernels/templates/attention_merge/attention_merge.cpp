#include <algorithm>
#include <limits>

#include "kernels/model/random.hpp"
#include "kernels/operations.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/operand_work.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/skeletons/elementwise.hpp"

namespace greta::kernels {
namespace {

bool stores_lse(const Problem& problem) {
  return problem.attribute("lse", "none") != "none";
}

std::vector<TensorSpec> tensors(const Problem& problem) {
  const std::int64_t tokens = problem.dim("tokens"), parts = problem.dim("parts");
  const std::int64_t heads = problem.dim("heads"), dim = problem.dim("dim");
  std::vector<TensorSpec> list{{"outs", Role::input, problem.dtype, parts * tokens * heads, dim},
                               {"lses", Role::input, DType::f32, parts * tokens, heads},
                               {"out", Role::output, problem.out_dtype, tokens * heads, dim}};
  if (stores_lse(problem)) list.push_back({"lse", Role::output, DType::f32, tokens, heads});
  return list;
}

/// Log-sum-exps from -4 to 4, so that all parts count.
HostTensor input(const Problem&, const TensorSpec& spec, std::uint64_t seed) {
  HostTensor tensor = random_tensor(spec, seed);
  for (std::size_t i = 0; spec.name == "lses" && i < spec.elements(); ++i) {
    store_element(spec.dtype, tensor.data.data(), i, 8 * tensor.at(i));
  }
  return tensor;
}

constexpr double none = -std::numeric_limits<double>::infinity();

/// Outputs of parts whose weights are 0 in f32, whenever a kernel finds the greatest log-sum-exp,
/// are NaN.
void spoil_unused(HostTensor& outs, const HostTensor& lses, std::int64_t rows, std::int64_t dim) {
  const auto parts = static_cast<std::int64_t>(lses.spec.elements()) / rows;
  const auto lse = [&](std::int64_t i) { return lses.at(static_cast<std::size_t>(i)); };
  for (std::int64_t row = 0; row < rows; ++row) {
    double greatest = lse(row);
    for (std::int64_t p = 1; p < parts; ++p) greatest = std::max(greatest, lse(p * rows + row));
    for (std::int64_t i = row; i < parts * rows; i += rows) {
      if (lse(i) != none && lse(i) >= greatest - 200) continue;
      for (std::int64_t d = 0; d < dim; ++d) {
        store_element(outs.spec.dtype, outs.data.data(), static_cast<std::size_t>(i * dim + d),
                      std::numeric_limits<double>::quiet_NaN());
      }
    }
  }
}

/// Rows of extreme outputs; log-sum-exps far from each other, and those of parts without keys. Of
/// parts that are not used, the outputs are NaN. Some rows have no key at all.
void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed) {
  HostTensor &outs = inputs[0], &lses = inputs[1];
  mix_in_adversarial_rows(outs, magnitudes_of(problem.dtype), seed);
  constexpr double kinds[] = {none, none, -1e4, -90, 0, 90, 1e4, -3e38, 3e38};
  const std::int64_t rows = problem.dim("tokens") * problem.dim("heads");
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(lses.spec.elements()); ++i) {
    const std::uint64_t draw = mix64(seed + static_cast<std::uint64_t>(i));
    const bool empty = mix64(seed + static_cast<std::uint64_t>(i % rows)) % 16 == 0;
    const std::uint64_t kind = empty ? 0 : draw % (2 * std::size(kinds));
    if (kind >= std::size(kinds)) continue;
    store_element(DType::f32, lses.data.data(), static_cast<std::size_t>(i), kinds[kind]);
  }
  spoil_unused(outs, lses, rows, problem.dim("dim"));
}

Result<void> check(const Problem& problem) {
  return check_count(problem, "tokens", {"parts", "tokens", "heads"});
}

/// A multiplication and an addition for each element of a part.
Work work(const Problem& problem) {
  const auto list = tensors(problem);
  return {2 * static_cast<double>(list.front().elements()), operand_bytes(list)};
}

/// The ITEMS of a thread are vectors of different parts.
ElementwiseShape shape(const Problem& problem) {
  const std::int64_t rows = problem.dim("tokens") * problem.dim("heads");
  const std::int64_t dim = problem.dim("dim"), parts = problem.dim("parts");
  ElementwiseShape shape = row_shape(problem, rows, dim, "dim");
  shape.defines = {{"LSE", stores_lse(problem) ? "1" : "0"}};
  add_constants(shape.defines, problem, {"dim"});
  const std::size_t operands = tensors(problem).size();
  for (std::size_t i = 0; i < operands; ++i) shape.arguments.emplace_back(OperandArgument{i});
  for (const std::int64_t extent : {parts, rows}) {
    shape.arguments.emplace_back(static_cast<std::uint32_t>(extent));
  }
  shape.workgroups = [=](const Config& c) {
    return ceil_div(rows * (dim / c["VEC"]), std::int64_t{c["THREADS"]});
  };
  shape.divisions = [=](const Config& c) -> std::vector<Division> {
    return {{"parts", parts, c["ITEMS"], "ITEMS"},
            {"threads", rows * (dim / c["VEC"]), c["THREADS"], "THREADS"}};
  };
  shape.rounds = [=](const Config& c) { return ceil_div(parts, std::int64_t{c["ITEMS"]}); };
  return shape;
}

}  // namespace

Operation make_attention_merge() {
  Operation t;
  t.name = "attention_merge";
  t.summary =
      "joins partial results of attention over parts of the keys, by their log-sum-exps; those of "
      "minus infinity, without keys, are not used, nor those whose weights are 0 in f32";
  t.bound =
      "a relative error of each weight, of its exponential, of the sum of all n parts' and of the "
      "products' sum, and 23 u for each part but the first, as sums and outputs may be scaled "
      "again, "
      "times |x|; the output's rounding";
  t.dimensions = {{.name = "parts",
                   .help = "number of partial results",
                   .most = 1024,
                   .examples = {1, 2, 3, 8, 13}},
                  run_time_tokens("number of tokens"),
                  {.name = "heads", .help = "heads of a token"},
                  {.name = "dim", .help = "elements of a head", .examples = {8, 64, 80, 128}}};
  t.attributes = {{.name = "lse",
                   .help = "stored: a second output is the log-sum-exp of all parts",
                   .fallback = "none",
                   .allowed = {"none", "stored"}}};
  t.dtypes = converted_dtypes();
  t.sizes = {{{2, 4096, 32, 128}}, {{8, 32, 32, 128}}, {{16, 1, 64, 128}}, {{3, 7, 3, 80}}};
  set_elementwise(t, "attention_merge/parts",
                  "a thread takes a vector of a head, and those of ITEMS parts at a time", shape);
  t.check = check;
  t.work = work;
  t.tensors = tensors;
  t.input = input;
  t.harden = harden;
  t.reference = attention_merge_reference;
  t.stand_in = fewer_tokens;
  return t;
}

}  // namespace greta::kernels
