#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "kernels/reference/elements.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/reference/rows.hpp"

namespace greta::kernels {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
using reference::u;

/// The argument of an element's exponential, and the error of rounding it to f32.
struct Score {
  double value = 0;
  double error = 0;
};

/// The maximum and the sum of a row.
struct RowSum {
  Score largest{-infinity, 0};
  /// Sum of e^(value - largest). If the largest is inf: the number of infinite elements.
  double sum = 0;
  double error = 0;  ///< relative error of the sum
};

/// Bounds the change of e^-d if the distance d >= 0 changes by at most `error`, which may be large.
double changed(double d, double error) {
  const double weight = std::exp(-d);
  return std::max(weight * error, std::exp(-std::max(0.0, d - error)) - weight);
}

class Softmax {
 public:
  Softmax(const Problem& problem, const std::vector<HostTensor>& inputs)
      : x_(keep_tensor(inputs, "X")),
        scale_(std::strtof(problem.attribute("scale", "1").c_str(), nullptr)),
        causal_(problem.attribute("mask", "none") == "causal"),
        out_(problem.out_dtype) {
    const bool additive = problem.attribute("mask", "none") == "additive";
    if (additive) mask_ = keep_tensor(inputs, "mask");
    sums_ = rows::for_each_row(x_->spec.rows, [this](std::int64_t row) { return sum_of(row); });
  }

  Expected element(std::int64_t row, std::int64_t col) const {
    const RowSum& all = sums_[static_cast<std::size_t>(row)];
    if (std::isnan(all.sum)) return {all.sum, 0};
    const Score score = score_of(row, col);
    if (all.sum == 0) return rounded(out_, 0, 0);
    if (all.largest.value == infinity) {
      if (score.value != infinity) return rounded(out_, 0, 0);
      return rounded(out_, 1 / all.sum, 7 * u / all.sum);
    }
    const double d = all.largest.value - score.value;
    if (d == infinity) return rounded(out_, 0, 0);
    const double value = std::exp(-d) / all.sum;
    const double own = d == 0 ? 0 : (6 + 3 * d) * 2 * u;
    const double moved = changed(d, score.error + all.largest.error) / all.sum;
    return rounded(out_, value, value * (own + all.error + 7 * u) + moved);
  }

 private:
  Score score_of(std::int64_t row, std::int64_t col) const {
    if (causal_ && col > row % x_->spec.cols) return {-infinity, 0};
    const auto at = static_cast<std::size_t>(row * x_->spec.cols + col);
    const bool masked = mask_ != nullptr;
    const double scaled = scale_ * x_->at(at), mask = masked ? mask_->at(at) : 0;
    const double value = scaled + mask;
    if (std::abs(value) >= 0x1.FFFFFFp127) return {std::copysign(infinity, value), 0};
    // What is below half a unit in the last place of FP64 is so in f32: both sums are the mask.
    if (masked && value == mask) return {value, 0};
    const double product = scale_ == 1 ? 0 : u * std::abs(scaled);
    return {value, product + (masked ? u * std::abs(value) : 0)};
  }

  RowSum sum_of(std::int64_t row) const {
    const std::int64_t cols = x_->spec.cols;
    std::vector<Score> scores(static_cast<std::size_t>(cols));
    RowSum all;
    bool nan = false;
    for (std::int64_t col = 0; col < cols; ++col) {
      Score& score = scores[static_cast<std::size_t>(col)];
      score = score_of(row, col);
      nan = nan || std::isnan(score.value);
      if (score.value > all.largest.value) all.largest = score;
    }
    if (nan) {
      all.sum = std::numeric_limits<double>::quiet_NaN();
    } else if (all.largest.value == infinity) {
      all.sum = static_cast<double>(std::count_if(
          scores.begin(), scores.end(), [](const Score& s) { return s.value == infinity; }));
    } else if (all.largest.value > -infinity) {
      add_up(scores, all);
    }
    return all;
  }

  static void add_up(const std::vector<Score>& scores, RowSum& all) {
    const auto cols = static_cast<std::int64_t>(scores.size());
    const double rescaled = 3 * (1 + rows::merges(cols));
    double errors = 0;
    for (const Score& score : scores) {
      const double d = all.largest.value - score.value;
      if (d == infinity) continue;
      const double e = std::exp(-d);
      all.sum += e;
      errors += e * (d == 0 ? 0 : (rescaled + 3 * d) * 2 * u);
      errors += changed(d, score.error + all.largest.error);
    }
    all.error = errors / all.sum + rows::sum_error(cols);
  }

  KeptTensor x_, mask_;
  double scale_;
  bool causal_;
  DType out_;
  std::vector<RowSum> sums_;
};

}  // namespace

std::unique_ptr<Reference> softmax_reference(const Problem& problem,
                                             const std::vector<HostTensor>& inputs, std::uint64_t) {
  const auto softmax = std::make_shared<Softmax>(problem, inputs);
  const bool in_place = problem.attribute("place", "out") == "in";
  const TensorSpec spec{in_place ? "X" : "Y", in_place ? Role::input_output : Role::output,
                        problem.out_dtype, problem.dim("rows"), problem.dim("cols")};
  return elements_reference({{spec, [softmax](std::int64_t row, std::int64_t col) {
                                return softmax->element(row, col);
                              }}});
}

}  // namespace greta::kernels
