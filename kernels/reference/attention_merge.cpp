#include <cmath>
#include <limits>

#include "kernels/reference/elements.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/reference/roundoff.hpp"

namespace greta::kernels {
namespace {

using reference::u;

constexpr double none = -std::numeric_limits<double>::infinity();
constexpr double flushed = 0x1p-126;
constexpr double unused = 200;  ///< less than the greatest log-sum-exp: weights are 0 in f32

/// The partial results of a problem.
struct Parts {
  Parts(const Problem& problem, const std::vector<HostTensor>& inputs)
      : count(problem.dim("parts")),
        rows(problem.dim("tokens") * problem.dim("heads")),
        dim(problem.dim("dim")),
        outs(keep_tensor(inputs, "outs")),
        lses(keep_tensor(inputs, "lses")) {}

  double lse(std::int64_t part, std::int64_t row) const {
    return lses->at(static_cast<std::size_t>(part * rows + row));
  }
  double out(std::int64_t part, std::int64_t row, std::int64_t col) const {
    return outs->at(static_cast<std::size_t>((part * rows + row) * dim + col));
  }

  std::int64_t count, rows, dim;
  KeptTensor outs, lses;
};

/// A kernel may scale its sums again for each part but the first (as for each greater log-sum-exp).
/// The distances of the greatest ones add up to that of a part's own power, whose error has them.
/// Besides, a power has 6 u, which Vulkan allows; the sum of weights a product and a sum; outputs
/// that, a quotient of 5 u, which Vulkan allows, and four products and sums.
double error_of_sum_scaling(std::int64_t parts) {
  return 8 * static_cast<double>(parts - 1) * u;
}
double error_of_out_scaling(std::int64_t parts) {
  return 15 * static_cast<double>(parts - 1) * u;
}

/// The powers of a row's log-sum-exps.
struct RowSum {
  RowSum(const Parts& parts, std::int64_t row) {
    for (std::int64_t p = 0; p < parts.count; ++p) most = std::max(most, parts.lse(p, row));
    for (std::int64_t p = 0; most > none && p < parts.count; ++p) {
      const double power = std::exp(parts.lse(p, row) - most);
      total += power;
      error += power * error_of_power(parts.lse(p, row) - most, parts.count);
    }
    if (total > 0) {
      error =
          error / total + static_cast<double>(parts.count) * u + error_of_sum_scaling(parts.count);
    }
  }

  /// Returns the relative error of exp(x) in f32, as a power of 2 whose exponent has three
  /// roundings. Vulkan requires 2^y within 3 + 2 |y| ulp. A weight, which is divided by the sum of
  /// all parts', may be below all normal numbers.
  static double error_of_power(double x, std::int64_t parts) {
    if (x == none) return 0;
    const double y = std::abs(x) * std::log2(std::exp(1.0));
    return 3 * u * std::abs(x) + 2 * u * (3 + 2 * y) +
           (y > 126 - std::log2(2.0 * static_cast<double>(parts)) ? 1 : 0);
  }

  double most = none, total = 0, error = 0;  ///< `error`: relative, of the sum
};

Expected merged(const Parts& parts, DType type, std::int64_t row, std::int64_t col) {
  const RowSum sum(parts, row);
  if (sum.total == 0) return {0, 0};
  double value = 0, error = 4 * static_cast<double>(parts.count) * flushed, size = 0;
  for (std::int64_t p = 0; p < parts.count; ++p) {
    const double lse = parts.lse(p, row);
    if (lse == none || lse < sum.most - unused) continue;
    const double term = std::exp(lse - sum.most) / sum.total * parts.out(p, row, col);
    value += term;
    size += std::abs(term);
    error += std::abs(term) * RowSum::error_of_power(lse - sum.most, parts.count);
  }
  error += size * (sum.error + static_cast<double>(parts.count + 5) * u +
                   error_of_out_scaling(parts.count));
  return rounded(type, value, error);
}

Expected merged_lse(const Parts& parts, std::int64_t row) {
  const RowSum sum(parts, row);
  if (sum.total == 0) return {none, 0};
  const double log = std::log(sum.total);
  return {sum.most + log, sum.error + 8 * u * (1 + std::abs(sum.most) + std::abs(log))};
}

}  // namespace

std::unique_ptr<Reference> attention_merge_reference(const Problem& problem,
                                                     const std::vector<HostTensor>& inputs,
                                                     std::uint64_t) {
  const Parts parts(problem, inputs);
  const std::int64_t heads = problem.dim("heads");
  std::vector<ExpectedOutput> outputs;
  outputs.push_back({{"out", Role::output, problem.out_dtype, parts.rows, parts.dim},
                     [parts, type = problem.out_dtype](std::int64_t row, std::int64_t col) {
                       return merged(parts, type, row, col);
                     }});
  if (problem.attribute("lse", "none") != "none") {
    outputs.push_back({{"lse", Role::output, DType::f32, parts.rows / heads, heads},
                       [parts, heads](std::int64_t row, std::int64_t col) {
                         return merged_lse(parts, row * heads + col);
                       }});
  }
  return elements_reference(std::move(outputs));
}

}  // namespace greta::kernels
