#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tuner/diagnose/causes/causes.hpp"

/// Correct kernels whose rounding exceeds the bound at some elements.
namespace greta::tuner {
namespace {

constexpr double most_wrong_share = 0.02;
constexpr double most_bounds = 3;       ///< by which an error exceeds its bound
constexpr double least_of_bound = 0.5;  ///< errors of correct elements that are near the bound
constexpr double most_bias = 0.2;       ///< mean of the errors, in their root mean squares
constexpr double unit_roundoff = 0x1p-24;
/// Of the errors' size, in that of the sum of as many roundings as there are terms: partial sums
/// are smaller than the result, and kernels add several of them at once.
constexpr double least_size = 1.0 / 32, most_size = 4;

/// The errors of all elements of an output.
struct AllErrors {
  double relative = 0;   ///< their root mean square, divided by that of the results
  double bias = 0;       ///< their mean, divided by their root mean square
  double largest = 0;    ///< in bounds
  std::size_t near = 0;  ///< correct elements with more than half of their bound
};

AllErrors all_errors_of(const ExaminedOutput& output) {
  AllErrors found;
  double errors = 0, sum = 0, results = 0;
  for (std::size_t i = 0; i < output.got.size(); ++i) {
    const double error = output.got[i] - output.want[i].value;
    if (!std::isfinite(error)) return {};
    errors += error * error;
    sum += error;
    results += output.want[i].value * output.want[i].value;
    const double bounds = std::abs(error) / output.want[i].bound;
    found.largest = std::max(found.largest, bounds);
    found.near += output.wrong[i] == 0 && bounds > least_of_bound ? 1 : 0;
  }
  const auto count = static_cast<double>(output.got.size());
  found.relative = std::sqrt(errors / results);
  found.bias = std::abs(sum / count) / std::sqrt(errors / count);
  return found;
}

/// Returns the length of the longest sums that a problem may have.
std::int64_t longest_sum(const Problem& problem) {
  std::int64_t longest = 1;
  for (const auto& [name, extent] : problem.dims) longest = std::max(longest, extent);
  return longest;
}

}  // namespace

void offer_rounding(Judge& judge) {
  const Evidence& evidence = judge.evidence();
  for (const ExaminedOutput& output : evidence.outputs()) {
    const std::size_t wrong = output.count(output.wrong);
    const auto count = static_cast<double>(output.got.size());
    if (output.spec.dtype != DType::f32 || wrong == 0 || output.count(output.varies) > 0 ||
        static_cast<double>(wrong) > std::max(1.0, most_wrong_share * count))
      continue;
    const AllErrors errors = all_errors_of(output);
    const std::int64_t terms = longest_sum(evidence.problem());
    const double size = errors.relative / (unit_roundoff * std::sqrt(static_cast<double>(terms)));
    // A fault's errors stand apart from those of the other elements.
    if (!(errors.largest <= most_bounds) || errors.near < wrong || !(errors.bias <= most_bias) ||
        !(size >= least_size && size <= most_size))
      continue;
    const double explained = static_cast<double>(wrong) / static_cast<double>(evidence.wrong());
    judge.add({.kind = "rounding",
               .words = fmt::format(
                   "the errors of all elements of {} have the size of rounding in f32, of sums of "
                   "up to {} terms, and only the largest exceed the bound: it is too small for "
                   "problems of this size",
                   output.spec.name, terms),
               .explained = explained,
               .residual = 1,
               .score = 0.97 * explained,
               .evidence = fmt::format(
                   "the errors are {:.2g} of the results on average, with either sign; {} correct "
                   "elements have more than half of their bound, and the largest error is {:.3g} "
                   "bounds",
                   errors.relative, errors.near, errors.largest)});
  }
}

}  // namespace greta::tuner
