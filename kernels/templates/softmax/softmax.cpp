#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <random>
#include <utility>

#include "kernels/model/random.hpp"
#include "kernels/operations.hpp"
#include "kernels/planning/number_attribute.hpp"
#include "kernels/planning/operand_work.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/skeletons/rows.hpp"

namespace greta::kernels {
namespace {

bool in_place(const Problem& problem) {
  return problem.attribute("place", "out") == "in";
}

std::vector<TensorSpec> tensors(const Problem& problem) {
  std::vector<TensorSpec> list;
  list.push_back(rows::matrix(problem, "X", in_place(problem) ? Role::input_output : Role::input));
  if (problem.attribute("mask", "none") == "additive") {
    list.push_back(rows::matrix(problem, "mask", Role::input));
  }
  if (!in_place(problem)) list.push_back(rows::matrix(problem, "Y", Role::output));
  return list;
}

Result<void> check(const Problem& problem) {
  if (!in_place(problem)) return {};
  if (problem.dtype != problem.out_dtype) {
    return bad_field("place", "in", "needs an output of the input's type");
  }
  const auto stride = [&problem](const char* name) {
    const std::int64_t cols = problem.dim("cols");
    return std::max(cols, problem.stride(name, cols));
  };
  const std::int64_t x = stride("x_stride"), y = stride("y_stride");
  if (x == y) return {};
  return bad_field("y_stride", std::to_string(y),
                   fmt::format("must be x_stride, {}, where place is in", x));
}

float scale(const Problem& problem) {
  return finite_number(problem.attribute("scale", "1")).value();
}

Defines defines(const Problem& problem) {
  const std::string mask = problem.attribute("mask", "none");
  return {{"SCALED", scale(problem) != 1 ? "1" : "0"},
          {"MASK", mask == "none"     ? "0"
                   : mask == "causal" ? "1"
                                      : "2"}};
}

/// Operations per element: maximum, difference, exponential, sum and product; scaling and masking.
Work work(const Problem& problem) {
  const std::string mask = problem.attribute("mask", "none");
  const double flops = 5.0 + (scale(problem) != 1 ? 1 : 0) + (mask == "additive" ? 1 : 0);
  Work least = work_per_element(tensors(problem), problem, flops);
  if (mask != "causal") return least;
  // Row r of each square reads r + 1 elements; all are written.
  const auto rows = static_cast<double>(problem.dim("rows"));
  const auto cols = static_cast<double>(problem.dim("cols"));
  const double squares = static_cast<double>(problem.dim("rows") / problem.dim("cols"));
  const double rest = rows - squares * cols;
  const double seen = (squares * cols * (cols + 1) + rest * (rest + 1)) / 2;
  least.bytes -= bytes_of(problem.dtype, rows * cols - seen);
  least.flops = flops * seen;
  return least;
}

/// Puts a few infinities of one sign, or NaN, into some rows. Those that are -inf after scaling
/// mask their elements.
void mix_in_special_values(HostTensor& x, std::mt19937_64& random) {
  for (std::int64_t row = 0; row < x.spec.rows; ++row) {
    if (uniform_below(random, 8) != 0) continue;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const double values[] = {infinity, -infinity, std::numeric_limits<double>::quiet_NaN()};
    const double value = values[uniform_below(random, std::size(values))];
    for (std::uint64_t left = 1 + uniform_below(random, 3); left > 0; --left) {
      const auto col = uniform_below(random, static_cast<std::uint64_t>(x.spec.cols));
      store_element(x.spec.dtype, x.data.data(), static_cast<std::size_t>(row * x.spec.cols) + col,
                    value);
    }
  }
}

/// Keeps scaled and masked elements within f32's range, or infinite if there is no additive mask.
/// Additive masks hide whole rows or parts of them, by infinity or by large finite numbers as
/// programs have them that avoid NaN: rows that are all hidden by those are not.
void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed) {
  Magnitudes range = magnitudes_of(problem.dtype);
  const double most = 0x1p126;
  range.most = std::min(range.most, most / std::max(1.0, std::abs(double{scale(problem)})));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    mix_in_adversarial_rows(inputs[i], range, mix64(seed + i));
  std::mt19937_64 random(seed);
  if (inputs.size() < 2) return mix_in_special_values(inputs[0], random);
  HostTensor& mask = inputs[1];
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double lowest = -std::min(magnitudes_of(mask.spec.dtype).most, 2 * most);
  for (std::int64_t row = 0; row < mask.spec.rows; ++row) {
    if (uniform_below(random, 4) != 0) continue;
    const std::uint64_t hidden = uniform_below(random, 5);  // of 4 elements
    const double hiding = uniform_below(random, 3) == 0 ? lowest : -infinity;
    for (std::int64_t col = 0; col < mask.spec.cols; ++col) {
      if (uniform_below(random, 4) >= hidden) continue;
      store_element(mask.spec.dtype, mask.data.data(),
                    static_cast<std::size_t>(row * mask.spec.cols + col), hiding);
    }
  }
}

}  // namespace

Operation make_softmax() {
  Operation t = rows::start_template(
      {"softmax", tensors, defines, scale, 2, 0},
      {number_attribute("scale", "factor of the elements", "1", {"1", "0.125", "-1.7"}),
       {.name = "mask",
        .help = "what a row sees: all of it; causal: columns up to row mod cols; additive: a "
                "tensor is added",
        .fallback = "none",
        .allowed = {"none", "causal", "additive"}},
       {.name = "place",
        .help = "out: out-of-place; in: in-place, Y replaces X",
        .fallback = "out",
        .allowed = {"out", "in"}}});
  t.summary = "softmax of each row, Y = softmax(scale * X + mask)";
  t.bound =
      "(6 + 3 |d|) 2u of an exponential whose distance to the row's largest element is d; the mean "
      "over the row of (3 (1 + m) + 3 |d|) 2u for the sum's terms and (11 + 2 m) u for adding "
      "them, m = 17 + max(8, cols / 256) merges of partial sums; 7u for dividing; a rounding of "
      "each scaled or masked element, but for one below 2^-53 of its mask; u = 2^-24; the output's "
      "rounding";
  t.check = check;
  t.work = work;
  t.harden = harden;
  t.reference = softmax_reference;
  return t;
}

}  // namespace greta::kernels
