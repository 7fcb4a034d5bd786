#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "tuner/diagnose/causes/causes.hpp"
#include "tuner/diagnose/least_squares.hpp"
#include "tuner/diagnose/where.hpp"

namespace greta::tuner {
namespace {

constexpr std::int64_t fewest_columns = 4;
constexpr double factor_tolerance = 1e-3;

/// A row and the factor by which its elements are wrong.
struct RowFactor {
  std::int64_t row = 0;
  double factor = 1;
};

/// The rows of an output as multiples of what is expected.
class ScaledRows {
 public:
  ScaledRows(Judge& judge, std::size_t at)
      : judge_(judge), evidence_(judge.evidence()), at_(at), output_(evidence_.outputs()[at]) {}

  void offer() {
    if (output_.spec.cols < fewest_columns || !is_floating(output_.spec.dtype)) return;
    offer_fitted();
    find_factors();
    if (factors_.empty()) return;
    predict();
    const Cause measured = judge_.compare("", "", predicted_);
    if (measured.explained < 0.3) return;
    judge_.offer_fitted(
        "wrong row statistic",
        fmt::format("each row of {} is multiplied by a factor of its own ({:.4g} in row "
                    "{}): the row's sum, mean or norm is wrong",
                    output_.spec.name, factors_.front().factor, factors_.front().row),
        predicted_, factors_.size(), 0.9);
    offer_common_factor();
    if (rows_sum_to_one()) offer_windows(true, output_values(), "the sum of each row");
    for (const HostTensor& input : evidence_.inputs()) {
      if (input.spec.rows != output_.spec.rows || input.spec.cols != output_.spec.cols ||
          !is_floating(input.spec.dtype))
        continue;
      offer_windows(false, squares_of(input), "the norm of each row of " + input.spec.name);
    }
  }

 private:
  using Matrix = std::vector<std::vector<double>>;  ///< rows

  std::size_t index(std::int64_t row, std::int64_t col) const {
    return static_cast<std::size_t>(row * output_.spec.cols + col);
  }
  bool is_wrong(std::int64_t row) const {
    for (std::int64_t col = 0; col < output_.spec.cols; ++col) {
      if (output_.wrong[index(row, col)] != 0) return true;
    }
    return false;
  }

  void find_factors() {
    for (std::int64_t row = 0; row < output_.spec.rows; ++row) {
      if (!is_wrong(row)) continue;
      double products = 0, squares = 0;
      for (std::int64_t col = 0; col < output_.spec.cols; ++col) {
        const double want = output_.want[index(row, col)].value;
        products += want * output_.got[index(row, col)];
        squares += want * want;
      }
      const double factor = products / squares;
      if (std::isfinite(factor)) factors_.push_back({row, factor});
    }
  }

  void predict() {
    predicted_ = evidence_.expected();
    for (const RowFactor& one : factors_) {
      for (std::int64_t col = 0; col < output_.spec.cols; ++col) {
        Expected& said = predicted_[at_][index(one.row, col)];
        said.value *= one.factor;
        said.bound *= std::abs(one.factor);
      }
    }
  }

  /// Fits each wrong row by what is expected, a constant, and the operands with one row, as norms
  /// with a wrong mean give.
  void offer_fitted() {
    std::vector<const HostTensor*> vectors;
    for (const HostTensor& input : evidence_.inputs()) {
      if (input.spec.rows == 1 && input.spec.cols == output_.spec.cols &&
          is_floating(input.spec.dtype))
        vectors.push_back(&input);
    }
    const auto terms = static_cast<std::int64_t>(2 + vectors.size());
    if (output_.spec.cols < 4 * terms) return;
    Prediction predicted = evidence_.expected();
    std::size_t fits = 0;
    for (std::int64_t row = 0; row < output_.spec.rows; ++row) {
      if (!is_wrong(row)) continue;
      ++fits;
      Matrix basis(static_cast<std::size_t>(terms));
      std::vector<double> got;
      for (std::int64_t col = 0; col < output_.spec.cols; ++col) {
        basis[0].push_back(output_.want[index(row, col)].value);
        basis[1].push_back(1);
        for (std::size_t v = 0; v < vectors.size(); ++v)
          basis[2 + v].push_back(vectors[v]->at(static_cast<std::size_t>(col)));
        got.push_back(output_.got[index(row, col)]);
      }
      const auto fitted = least_squares(basis, got);
      for (std::size_t col = 0; col < got.size(); ++col) {
        double& value = predicted[at_][index(row, static_cast<std::int64_t>(col))].value;
        value = 0;
        for (std::size_t t = 0; t < basis.size(); ++t) value += fitted[t] * basis[t][col];
      }
    }
    judge_.offer_fitted(
        "wrong row statistic",
        fmt::format("each row of {} is scaled and moved by constants of its own: the row's "
                    "mean or variance is wrong",
                    output_.spec.name),
        predicted, fits * static_cast<std::size_t>(terms), 0.8);
  }

  void offer_common_factor() {
    const double factor = factors_.front().factor;
    const bool common = std::all_of(factors_.begin(), factors_.end(), [&](const RowFactor& one) {
      return std::abs(one.factor / factor - 1) < factor_tolerance;
    });
    if (!common || factors_.size() < 2) return;
    const auto cols = static_cast<double>(output_.spec.cols);
    for (const double other : {cols - 1, cols + 1, std::ceil(cols / 4) * 4, std::ceil(cols / 8) * 8,
                               std::ceil(cols / 32) * 32, std::ceil(cols / 64) * 64}) {
      if (other == cols || std::abs(std::sqrt(other / cols) / factor - 1) > factor_tolerance)
        continue;
      judge_.offer("wrong row statistic",
                   fmt::format("the mean of each row is a sum divided by {:.0f}, not by {:.0f}",
                               other, cols),
                   predicted_, 0.95);
      return;
    }
  }

  bool rows_sum_to_one() const {
    double sum = 0;
    for (std::int64_t col = 0; col < output_.spec.cols; ++col)
      sum += output_.want[index(factors_.front().row, col)].value;
    return std::abs(sum - 1) < 0.02;
  }

  Matrix output_values() const {
    Matrix values(rows());
    for (std::size_t r = 0; r < rows(); ++r) {
      for (std::int64_t col = 0; col < output_.spec.cols; ++col)
        values[r].push_back(output_.want[index(factors_[r].row, col)].value);
    }
    return values;
  }
  /// Returns the shares of the row's sum of squares.
  Matrix squares_of(const HostTensor& input) const {
    Matrix values(rows());
    for (std::size_t r = 0; r < rows(); ++r) {
      double sum = 0;
      for (std::int64_t col = 0; col < output_.spec.cols; ++col) {
        const double x = input.at(index(factors_[r].row, col));
        values[r].push_back(x * x);
        sum += x * x;
      }
      for (double& value : values[r]) value /= sum;
    }
    return values;
  }
  std::size_t rows() const { return std::min<std::size_t>(8, factors_.size()); }

  /// Returns whether all factors are what rows have if columns from `first` to before `last` are
  /// left out of their sums, or count twice.
  bool explains(const Matrix& sums, std::int64_t first, std::int64_t last, bool linear,
                bool doubled) const {
    for (std::size_t r = 0; r < rows(); ++r) {
      const double part =
          sums[r][static_cast<std::size_t>(last)] - sums[r][static_cast<std::size_t>(first)];
      const double counted = doubled ? 1 + part : 1 - part;
      const double factor = linear ? 1 / counted : 1 / std::sqrt(counted);
      const double measured = factors_[r].factor;
      if (!(std::abs(factor / measured - 1) < factor_tolerance)) return false;
    }
    return true;
  }

  /// Finds columns that are missing in rows' sums, or count twice: tails first, then others.
  void offer_windows(bool linear, const Matrix& shares, const std::string& what) {
    const std::int64_t cols = output_.spec.cols;
    Matrix sums(rows(), std::vector<double>(1, 0));
    for (std::size_t r = 0; r < rows(); ++r) {
      for (const double share : shares[r]) sums[r].push_back(sums[r].back() + share);
    }
    const auto say = [&](std::int64_t first, std::int64_t last, bool doubled) {
      std::vector<std::int64_t> indices;
      for (std::int64_t i = first; i < last; ++i) indices.push_back(i);
      judge_.offer(doubled        ? "doubled slice"
                   : last == cols ? "missing tail"
                                  : "missing slice",
                   fmt::format("columns {} {} {}",
                               words_of_indices(indices, cols, part_of(evidence_.failed(), cols)),
                               doubled ? "count twice in" : "are missing in", what),
                   predicted_, 0.99);
    };
    for (const bool doubled : {false, true}) {
      for (std::int64_t first = cols - 1; first > 0; --first) {
        if (explains(sums, first, cols, linear, doubled)) return say(first, cols, doubled);
      }
      if (cols > 2048) continue;
      for (std::int64_t first = 0; first < cols; ++first) {
        for (std::int64_t last = first + 1; last < cols; ++last) {
          if (explains(sums, first, last, linear, doubled)) return say(first, last, doubled);
        }
      }
    }
  }

  Judge& judge_;
  const Evidence& evidence_;
  std::size_t at_;
  const ExaminedOutput& output_;
  std::vector<RowFactor> factors_;  ///< of wrong rows
  Prediction predicted_;            ///< with these factors
};

}  // namespace

void offer_row_factors(Judge& judge) {
  for (std::size_t i = 0; i < judge.evidence().outputs().size(); ++i) ScaledRows(judge, i).offer();
}

}  // namespace greta::tuner
