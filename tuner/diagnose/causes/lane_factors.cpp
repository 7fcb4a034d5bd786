#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "tuner/diagnose/causes/causes.hpp"
#include "tuner/diagnose/least_squares.hpp"

/// Rows whose elements are scaled by another sum in each lane, as if the sum across lanes did not
/// reach all of them.
namespace greta::tuner {
namespace {

constexpr double least_lanes_explained = 0.6;
constexpr std::int64_t most_factors = 256;

/// An output whose columns belong to lanes: `vector` neighbouring ones to each of `lanes`.
class LaneRows {
 public:
  LaneRows(Judge& judge, std::size_t at)
      : judge_(judge), evidence_(judge.evidence()), at_(at), output_(evidence_.outputs()[at]) {
    for (const HostTensor& input : evidence_.inputs()) {
      if (input.spec.rows == 1 && input.spec.cols == output_.spec.cols &&
          is_floating(input.spec.dtype))
        vectors_.push_back(&input);
    }
  }

  /// Offers the least number of lanes that explains the errors. Elements of one lane are scaled, or
  /// scaled and shifted as by another mean.
  void offer() {
    for (const bool shifted : {false, true}) {  // what all lanes share has another cause
      if (share_of(fitted(1, 1, shifted)) >= least_lanes_explained) return;
    }
    for (const bool shifted : {false, true}) {
      for (std::int64_t lanes = 2; lanes <= most_factors; lanes *= 2) {
        for (const std::int64_t vector : {1, 2, 4, 8}) {
          if (!judge_.time_left()) return judge_.hurry();
          if (offer_lanes(lanes, vector, shifted)) return;
        }
      }
    }
  }

 private:
  double share_of(const std::optional<Prediction>& predicted) const {
    return predicted ? judge_.compare("", "", *predicted).explained : 0;
  }

  bool offer_lanes(std::int64_t lanes, std::int64_t vector, bool shifted) {
    const auto predicted = fitted(lanes, vector, shifted);
    if (share_of(predicted) < least_lanes_explained) return false;
    judge_.offer_fitted(
        "wrong sum across lanes",
        fmt::format("each of {} lanes, with {} neighbouring columns of {} each, scales its "
                    "elements of a row by a sum{} of its own: a step of the sum across "
                    "lanes is missing, or adds another lane",
                    lanes, vector, output_.spec.name, shifted ? " and a mean" : ""),
        *predicted, fitted_numbers(lanes, vector, shifted), 0.96);
    return true;
  }

  /// The number of constants that are fitted to the elements of a lane in a row.
  std::int64_t terms_of(bool shifted) const {
    return static_cast<std::int64_t>(shifted ? 2 + vectors_.size() : 1);
  }
  /// Returns the number of constants of all lanes and rows with wrong elements.
  std::size_t fitted_numbers(std::int64_t lanes, std::int64_t vector, bool shifted) const {
    std::set<std::pair<std::int64_t, std::int64_t>> fits;
    for (std::size_t i = 0; i < output_.wrong.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i), cols = output_.spec.cols;
      if (output_.wrong[i] != 0) fits.insert({at / cols, at % cols / vector % lanes});
    }
    return fits.size() * static_cast<std::size_t>(terms_of(shifted));
  }

  /// Returns what fits the elements of each lane in each row; nothing if they are too few.
  std::optional<Prediction> fitted(std::int64_t lanes, std::int64_t vector, bool shifted) const {
    const std::int64_t terms = terms_of(shifted);
    if (output_.spec.cols < 3 * terms * lanes) return std::nullopt;
    Prediction predicted = evidence_.expected();
    for (std::int64_t row = 0; row < output_.spec.rows; ++row) {
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        std::vector<std::size_t> own;
        for (std::int64_t col = 0; col < output_.spec.cols; ++col) {
          if (col / vector % lanes == lane)
            own.push_back(static_cast<std::size_t>(row * output_.spec.cols + col));
        }
        fit(own, shifted, predicted[at_]);
      }
    }
    return predicted;
  }

  /// Replaces what is expected of elements by what fits them best.
  void fit(const std::vector<std::size_t>& own, bool shifted, std::vector<Expected>& values) const {
    std::vector<std::vector<double>> basis(shifted ? 2 + vectors_.size() : 1);
    std::vector<double> got;
    for (const std::size_t i : own) {
      const double weight = 1 / std::max(1e-30, std::abs(values[i].value));  // of relative errors
      if (!std::isfinite(output_.got[i]) || !std::isfinite(values[i].value)) return;
      got.push_back(weight * output_.got[i]);
      basis[0].push_back(weight * values[i].value);
      if (!shifted) continue;
      basis[1].push_back(weight);
      const std::size_t col = i % static_cast<std::size_t>(output_.spec.cols);
      for (std::size_t v = 0; v < vectors_.size(); ++v)
        basis[2 + v].push_back(weight * vectors_[v]->at(col));
    }
    const std::vector<double> factors = least_squares(basis, got);
    for (std::size_t e = 0; e < own.size(); ++e) {
      double value = 0;
      for (std::size_t term = 0; term < factors.size(); ++term)
        value += factors[term] * basis[term][e];
      Expected& one = values[own[e]];
      if (!std::isfinite(value)) continue;
      one = {value * std::max(1e-30, std::abs(one.value)), one.bound * std::abs(factors[0])};
    }
  }

  Judge& judge_;
  const Evidence& evidence_;
  std::size_t at_;
  const ExaminedOutput& output_;
  std::vector<const HostTensor*> vectors_;  ///< operands with one row, as gain and bias
};

}  // namespace

void offer_lane_factors(Judge& judge) {
  const auto& outputs = judge.evidence().outputs();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (is_floating(outputs[i].spec.dtype) && outputs[i].fails()) LaneRows(judge, i).offer();
  }
}

}  // namespace greta::tuner
