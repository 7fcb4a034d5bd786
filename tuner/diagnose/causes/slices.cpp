#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tuner/diagnose/causes/causes.hpp"
#include "tuner/diagnose/least_squares.hpp"
#include "tuner/diagnose/where.hpp"

namespace greta::tuner {
namespace {

constexpr std::int64_t most_slices = 96;
constexpr std::size_t most_equations = 4000;

/// An operand's rows or columns in slices of equal width, and what each contributes to the outputs.
class SlicedAxis {
 public:
  SlicedAxis(Judge& judge, std::size_t which, bool rows)
      : judge_(judge),
        evidence_(judge.evidence()),
        which_(which),
        rows_(rows),
        spec_(judge.evidence().inputs()[which].spec),
        extent_(rows ? spec_.rows : spec_.cols),
        width_((extent_ + most_slices - 1) / most_slices) {}

  void offer() {
    if (extent_ < 2) return;
    offer_usual();
    if (find_contributions()) {
      offer_fitted();
    } else if (is_reduced()) {
      offer_windows();
    }
  }

 private:
  /// Returns whether no output has the axis.
  bool is_reduced() const {
    return std::none_of(evidence_.outputs().begin(), evidence_.outputs().end(),
                        [&](const ExaminedOutput& output) {
                          return output.spec.rows == extent_ || output.spec.cols == extent_;
                        });
  }
  /// Returns whether elements count by their order, so that none is minus infinity rather than 0.
  bool is_ordered() const {
    const std::string& op = evidence_.problem().op;
    return op == "argmax" || op == "softmax";
  }

  std::int64_t slices() const { return (extent_ + width_ - 1) / width_; }

  /// Returns the inputs with a range of the axis multiplied.
  std::vector<HostTensor> scaled(std::int64_t first, std::int64_t last, double factor) const {
    std::vector<HostTensor> inputs = evidence_.inputs();
    HostTensor& to = inputs[which_];
    for (std::int64_t row = rows_ ? first : 0; row < (rows_ ? last : spec_.rows); ++row) {
      for (std::int64_t col = rows_ ? 0 : first; col < (rows_ ? spec_.cols : last); ++col) {
        const auto at = static_cast<std::size_t>(row * spec_.cols + col);
        const bool lowest = factor == 0 && is_ordered();
        store_element(spec_.dtype, to.data.data(), at,
                      lowest ? -std::numeric_limits<double>::infinity() : factor * to.at(at));
      }
    }
    return inputs;
  }

  /// Returns whether the axis is longer if the dimension is. Several may have the same extent.
  bool lengthens(const std::string& dimension) const {
    Problem longer = evidence_.problem();
    ++longer.extent(dimension);
    std::size_t input = 0;
    for (const TensorSpec& spec : evidence_.operation().tensors(longer)) {
      if (spec.role == Role::output || input++ != which_) continue;
      return (rows_ ? spec.rows : spec.cols) > extent_;
    }
    return false;
  }
  std::string name_of_axis() const {
    for (const auto& [name, extent] : evidence_.problem().dims) {
      if (extent == extent_ && lengthens(name))
        return fmt::format("{} ({} of {})", name, rows_ ? "rows" : "columns", spec_.name);
    }
    return fmt::format("{} of {}", rows_ ? "rows" : "columns", spec_.name);
  }

  std::string words(const std::vector<std::int64_t>& indices, const char* what) const {
    return fmt::format("{} {} {}", name_of_axis(),
                       words_of_indices(indices, extent_, part_of(evidence_.failed(), extent_)),
                       what);
  }

  static std::string kind_of(bool doubled, bool tail) {
    return doubled ? "doubled slice" : tail ? "missing tail" : "missing slice";
  }

  void offer_range(std::int64_t first, std::int64_t last, bool doubled) {
    if (first >= last || (first == 0 && last == extent_)) return;
    if (doubled && is_ordered()) return;  // what counts twice changes no order
    std::vector<std::int64_t> indices;
    for (std::int64_t i = first; i < last; ++i) indices.push_back(i);
    judge_.offer_inputs(kind_of(doubled, last == extent_),
                        words(indices, doubled ? "counts twice" : "is skipped"),
                        scaled(first, last, doubled ? 2 : 0), 0.98);
  }

  /// Offers all ranges of sixteenths of the axis.
  void offer_windows() {
    constexpr std::int64_t pieces = 16;
    const auto border = [&](std::int64_t piece) { return piece * extent_ / pieces; };
    for (std::int64_t first = 0; first < pieces; ++first) {
      for (std::int64_t last = first + 1; last <= pieces; ++last) {
        offer_range(border(first), border(last), false);
        offer_range(border(first), border(last), true);
      }
    }
  }

  /// Offers tails and whole parts of the usual lengths, which also works where the outputs are not
  /// linear in the operand.
  void offer_usual() {
    std::vector<std::int64_t> parts{1, 2, 4, 8, 16, 32, 64, 128};
    if (const auto part = part_of(evidence_.failed(), extent_); part > 0) parts.push_back(part);
    for (const std::int64_t part : parts) {
      if (part >= extent_) continue;
      for (const bool doubled : {false, true}) {
        offer_range(extent_ - part, extent_, doubled);
        offer_range(extent_ / part * part, extent_, doubled);
        offer_range(0, part, doubled);
      }
    }
  }

  /// Computes what each slice contributes to the sampled wrong elements. Fails if there is no time
  /// or no reference, or if the contributions don't add up: the outputs are not linear.
  bool find_contributions() {
    const std::size_t step = std::max<std::size_t>(1, evidence_.wrong() / most_equations);
    std::size_t seen = 0;
    for (std::size_t o = 0; o < evidence_.outputs().size(); ++o) {
      const ExaminedOutput& output = evidence_.outputs()[o];
      for (std::size_t i = 0; i < output.got.size(); ++i) {
        if (output.wrong[i] == 0 || !std::isfinite(output.got[i]) ||
            !std::isfinite(output.want[i].value))
          continue;
        if (seen++ % step == 0) sampled_.emplace_back(o, i);
      }
    }
    if (static_cast<std::int64_t>(sampled_.size()) < slices() / 2 + 2) return false;
    for (std::int64_t s = 0; s < slices(); ++s) {
      if (!judge_.time_left()) {
        judge_.hurry();
        return false;
      }
      const auto without =
          evidence_.recompute(scaled(s * width_, std::min(extent_, (s + 1) * width_), 0));
      if (!without) return false;
      contributions_.push_back(changes(*without));
    }
    const auto nothing = evidence_.recompute(scaled(0, extent_, 0));
    if (!nothing) return false;
    const std::vector<double> all = changes(*nothing);
    double apart = 0, size = 0;
    for (std::size_t e = 0; e < all.size(); ++e) {
      double sum = -all[e];
      for (const auto& of_slice : contributions_) sum += of_slice[e];
      apart += sum * sum;
      size += all[e] * all[e];
    }
    return apart < 1e-4 * size;  // false for NaN
  }

  /// Returns by how much the sampled elements' expected values exceed predicted ones.
  std::vector<double> changes(const Prediction& predicted) const {
    std::vector<double> list;
    for (const auto& [o, i] : sampled_)
      list.push_back(evidence_.outputs()[o].want[i].value - predicted[o][i].value);
    return list;
  }

  /// Fits how often each slice is counted too often, by least squares, and offers what is skipped
  /// (-1) and what counts twice (1).
  void offer_fitted() {
    std::vector<double> errors;
    for (const auto& [o, i] : sampled_)
      errors.push_back(evidence_.outputs()[o].got[i] - evidence_.outputs()[o].want[i].value);
    const std::vector<double> counts = least_squares(contributions_, errors);
    std::vector<std::int64_t> missing, doubled;
    for (std::int64_t s = 0; s < slices(); ++s) {
      const double rounded = std::round(counts[static_cast<std::size_t>(s)]);
      if (std::abs(rounded) != 1) continue;
      auto& list = rounded < 0 ? missing : doubled;
      for (std::int64_t i = s * width_; i < std::min(extent_, (s + 1) * width_); ++i)
        list.push_back(i);
    }
    offer_set(missing, false);
    offer_set(doubled, true);
  }

  void offer_set(const std::vector<std::int64_t>& indices, bool doubled) {
    if (indices.empty() || static_cast<std::int64_t>(indices.size()) == extent_) return;
    std::vector<HostTensor> inputs = evidence_.inputs();
    HostTensor& to = inputs[which_];
    for (const std::int64_t index : indices) {
      for (std::int64_t other = 0; other < (rows_ ? spec_.cols : spec_.rows); ++other) {
        const auto at = static_cast<std::size_t>(rows_ ? index * spec_.cols + other
                                                       : other * spec_.cols + index);
        store_element(spec_.dtype, to.data.data(), at, (doubled ? 2 : 0) * to.at(at));
      }
    }
    const bool tail =
        indices.back() == extent_ - 1 &&
        indices.back() - indices.front() + 1 == static_cast<std::int64_t>(indices.size());
    judge_.offer_inputs(kind_of(doubled, tail),
                        words(indices, doubled ? "counts twice" : "is skipped"), inputs, 0.98);
  }

  Judge& judge_;
  const Evidence& evidence_;
  std::size_t which_;
  bool rows_;
  TensorSpec spec_;
  std::int64_t extent_, width_;
  std::vector<std::pair<std::size_t, std::size_t>> sampled_;  ///< output and element
  std::vector<std::vector<double>> contributions_;  ///< of each slice to the sampled elements
};

}  // namespace

void offer_slices(Judge& judge) {
  for (std::size_t i = 0; i < judge.evidence().inputs().size(); ++i) {
    if (!is_floating(judge.evidence().inputs()[i].spec.dtype)) continue;
    SlicedAxis(judge, i, false).offer();
    SlicedAxis(judge, i, true).offer();
  }
}

}  // namespace greta::tuner
