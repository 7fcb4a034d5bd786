#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "tuner/diagnose/causes/causes.hpp"
#include "tuner/diagnose/causes/in_memory.hpp"
#include "tuner/diagnose/least_squares.hpp"

/// Faults of sums across lanes. Neighbouring elements, or vectors of them, belong to neighbouring
/// lanes, and a step of the sum adds the lanes whose numbers differ in one bit. Without it, the
/// elements whose index has that bit, or those whose index doesn't, do not count.
namespace greta::tuner {
namespace {

constexpr const char* lane_kind = "wrong sum across lanes";
constexpr std::size_t fewest_sampled = 8;
constexpr std::size_t most_sampled = 4000;
constexpr std::int64_t most_lanes = 64;
constexpr double slowest_s = 0.004;       ///< of a reference, for hypotheses about several steps
constexpr double whole_tolerance = 0.02;  ///< of how often lanes count

/// The axis of an operand over which a kernel may sum by lanes.
class LaneAxis {
 public:
  LaneAxis(Judge& judge, std::size_t which, bool rows)
      : judge_(judge),
        evidence_(judge.evidence()),
        which_(which),
        rows_(rows),
        spec_(evidence_.inputs()[which].spec),
        extent_(rows ? spec_.rows : spec_.cols) {}

  void offer_steps() {
    if (extent_ < 2 || !is_reduced()) return;
    const auto nothing = without([](std::int64_t) { return true; });
    if (!nothing) return;
    sample(*nothing);
    const auto begun = Judge::Clock::now();
    std::size_t recomputed = 0;
    for (std::int64_t bit = 1; bit < extent_; bit *= 2, recomputed += 2) {
      if (!judge_.time_left()) return judge_.hurry();
      const auto unset = without([=](std::int64_t at) { return (at & bit) != 0; });
      const auto set = without([=](std::int64_t at) { return (at & bit) == 0; });
      if (!unset || !set) return;
      offer_counts(bit, *nothing, *unset, *set);
      offer_statistic(bit, *unset, *set);
      offer_own(bit, bit * 2);
    }
    const std::chrono::duration<double> took = Judge::Clock::now() - begun;
    if (took.count() > slowest_s * static_cast<double>(recomputed)) return;
    for (std::int64_t first = 1; first < extent_; first *= 2) {
      for (std::int64_t end = first * 4; end <= std::min(extent_, first * most_lanes); end *= 2) {
        if (!judge_.time_left()) return judge_.hurry();
        offer_first(first, end, *nothing);
        offer_own(first, end);
      }
    }
  }

 private:
  /// Returns whether an element of the axis changes elements of outputs at other places of the
  /// axis: whether something is summed, or at least compared, along it.
  bool is_reduced() const {
    Inputs inputs = evidence_.inputs();
    HostTensor& to = inputs[which_];
    store_element(spec_.dtype, to.data.data(), 0, to.at(0) + 1);
    const auto changed = evidence_.recompute(inputs);
    if (!changed) return false;
    for (std::size_t o = 0; o < changed->size(); ++o) {
      const TensorSpec& output = evidence_.outputs()[o].spec;
      if (!is_floating(output.dtype)) continue;
      const bool same_axis = (rows_ ? output.rows : output.cols) == extent_;
      for (std::size_t i = 0; i < (*changed)[o].size(); ++i) {
        const auto at = static_cast<std::int64_t>(i);
        const std::int64_t along = rows_ ? at / output.cols : at % output.cols;
        if (same_axis && along == 0) continue;
        if ((*changed)[o][i].value != evidence_.outputs()[o].want[i].value) return true;
      }
    }
    return false;
  }

  /// Returns what is expected if elements count as 0.
  template <typename Skip>
  std::optional<Prediction> without(const Skip& skips) const {
    return evidence_.recompute(replaced(evidence_, which_, [&](std::int64_t row, std::int64_t col) {
      const double value =
          evidence_.inputs()[which_].at(static_cast<std::size_t>(row * spec_.cols + col));
      return skips(rows_ ? row : col) ? neutral() : value;
    }));
  }

  /// Selects wrong elements that depend on the operand.
  void sample(const Prediction& nothing) {
    for (std::size_t o = 0; o < nothing.size(); ++o) {
      const ExaminedOutput& output = evidence_.outputs()[o];
      for (std::size_t i = 0; i < output.got.size(); ++i) {
        if (output.wrong[i] != 0 && std::isfinite(output.got[i]) &&
            std::isfinite(output.want[i].value) && output.want[i].value != nothing[o][i].value)
          sampled_.emplace_back(o, i);
      }
    }
    const std::size_t step = sampled_.size() / most_sampled + 1;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < sampled_.size(); i += step) sampled_[kept++] = sampled_[i];
    sampled_.resize(kept);
  }

  /// Fits how often the elements without the bit, and those with it, count in outputs that are
  /// linear in the operand.
  void offer_counts(std::int64_t bit, const Prediction& nothing, const Prediction& unset,
                    const Prediction& set) {
    if (sampled_.size() < fewest_sampled) return;
    std::vector<std::vector<double>> parts(2);
    std::vector<double> got;
    double apart = 0, size = 0;
    for (const auto& [o, i] : sampled_) {
      const double none = nothing[o][i].value;
      parts[0].push_back(unset[o][i].value - none);
      parts[1].push_back(set[o][i].value - none);
      got.push_back(evidence_.outputs()[o].got[i] - none);
      const double all = evidence_.outputs()[o].want[i].value - none;
      apart += std::pow(all - parts[0].back() - parts[1].back(), 2);
      size += all * all;
    }
    linear_ = apart < 1e-4 * size;  // false for NaN
    if (!linear_) return;
    const std::vector<double> counts = least_squares(parts, got);
    const double whole[] = {std::round(counts[0]), std::round(counts[1])};
    if (whole[0] == whole[1] || std::abs(counts[0] - whole[0]) > whole_tolerance ||
        std::abs(counts[1] - whole[1]) > whole_tolerance)
      return;  // false for NaN
    Prediction predicted = nothing;
    for (std::size_t o = 0; o < predicted.size(); ++o) {
      for (std::size_t i = 0; i < predicted[o].size(); ++i) {
        const double none = nothing[o][i].value;
        Expected& one = predicted[o][i];
        one.value += whole[0] * (unset[o][i].value - none) + whole[1] * (set[o][i].value - none);
        one.bound = std::abs(whole[0]) * unset[o][i].bound + std::abs(whole[1]) * set[o][i].bound;
      }
    }
    judge_.offer(lane_kind,
                 fmt::format("{} count {} where their index has the bit {}, and {} where it does "
                             "not: a step of the sum across lanes is missing, or adds another lane",
                             elements(), times(whole[1]), bit, times(whole[0])),
                 predicted, 0.985);
  }

  /// Offers that only the first of several lanes counts in outputs that are linear in the operand,
  /// a power of 2 times: those whose bits from `first` to before `end` are 0.
  void offer_first(std::int64_t first, std::int64_t end, const Prediction& nothing) {
    if (sampled_.size() < fewest_sampled || !linear_) return;
    const auto own = without([=](std::int64_t at) { return at % end / first != 0; });
    if (!own) return;
    double products = 0, squares = 0;
    for (const auto& [o, i] : sampled_) {
      const double none = nothing[o][i].value, part = (*own)[o][i].value - none;
      products += part * (evidence_.outputs()[o].got[i] - none);
      squares += part * part;
    }
    const double count = std::exp2(std::round(std::log2(products / squares)));
    if (!(std::abs(products / squares / count - 1) < whole_tolerance)) return;
    Prediction predicted = nothing;
    for (std::size_t o = 0; o < predicted.size(); ++o) {
      for (std::size_t i = 0; i < predicted[o].size(); ++i) {
        const Expected& one = (*own)[o][i];
        predicted[o][i] = {nothing[o][i].value + count * (one.value - nothing[o][i].value),
                           count * one.bound};
      }
    }
    judge_.offer(lane_kind,
                 fmt::format("of {}, only every first of {} groups of {} counts, {}: lanes are "
                             "not added to each other",
                             elements(), end / first, first, times(count)),
                 predicted, 0.985);
  }

  /// Offers that each lane has a sum of its own, by which it scales its elements: over those that
  /// agree with it in the bits from `first` to before `end`. The others don't count, or its own
  /// count in place of theirs.
  void offer_own(std::int64_t first, std::int64_t end) {
    if (rows_ || !scales_rows()) return;
    const std::int64_t lanes = end / first;
    for (const bool instead : {false, true}) {
      Prediction predicted = evidence_.expected();
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        const auto own = evidence_.recompute(
            replaced(evidence_, which_, [&](std::int64_t row, std::int64_t col) {
              const bool agrees = col % end / first == lane;
              const std::int64_t other = col - col % end + lane * first + col % first;
              if (!agrees && (!instead || other >= extent_)) return neutral();
              const std::int64_t from = agrees ? col : other;
              return evidence_.inputs()[which_].at(static_cast<std::size_t>(row * extent_ + from));
            }));
        if (!own) return;
        for (std::size_t o = 0; o < predicted.size(); ++o) {
          if (evidence_.outputs()[o].spec.cols != extent_) continue;
          for (std::size_t i = 0; i < predicted[o].size(); ++i) {
            const auto col = static_cast<std::int64_t>(i) % extent_;
            if (col % end / first == lane) predicted[o][i] = (*own)[o][i];
          }
        }
      }
      judge_.offer(
          lane_kind,
          fmt::format("each lane scales its elements of {} by a sum of its own, over those "
                      "of {} groups of {} that it belongs to{}: a step of the sum across "
                      "lanes is missing, or adds another lane",
                      spec_.name, lanes, first,
                      instead ? ", which count for the others as well" : ""),
          predicted, 0.98);
    }
  }

  /// Returns whether an output has the operand's elements.
  bool scales_rows() const {
    return std::any_of(evidence_.outputs().begin(), evidence_.outputs().end(),
                       [&](const ExaminedOutput& output) {
                         return output.spec.cols == extent_ && output.spec.rows == spec_.rows &&
                                is_floating(output.spec.dtype);
                       });
  }

  /// Returns the value that changes nothing in what the operation computes of a row.
  double neutral() const {
    const std::string& op = evidence_.problem().op;
    return op == "argmax" || op == "softmax" ? -std::numeric_limits<double>::infinity() : 0;
  }

  /// Offers that a sum or norm of each row, by which all its elements are scaled, lacks the
  /// elements with the bit or those without it: the others have the values that they have without.
  void offer_statistic(std::int64_t bit, const Prediction& unset, const Prediction& set) {
    if (rows_) return;
    for (std::size_t o = 0; o < evidence_.outputs().size(); ++o) {
      const ExaminedOutput& output = evidence_.outputs()[o];
      if (output.spec.cols != spec_.cols || !is_floating(output.spec.dtype)) continue;
      for (const bool with : {false, true}) {
        const Prediction& half = with ? set : unset;
        Prediction predicted = evidence_.expected();
        for (std::int64_t row = 0; row < output.spec.rows; ++row) {
          const auto first = static_cast<std::size_t>(row * output.spec.cols);
          double products = 0, squares = 0;
          for (std::int64_t col = 0; col < output.spec.cols; ++col) {
            if (((col & bit) != 0) != with) continue;
            const std::size_t i = first + static_cast<std::size_t>(col);
            products += half[o][i].value * output.want[i].value;
            squares += output.want[i].value * output.want[i].value;
          }
          const double factor = squares > 0 ? products / squares : 1;
          for (std::int64_t col = 0; col < output.spec.cols; ++col) {
            Expected& one = predicted[o][first + static_cast<std::size_t>(col)];
            one = {one.value * factor, one.bound * std::abs(factor)};
          }
        }
        judge_.offer(lane_kind,
                     fmt::format("the sum of each row over {} lacks those whose index {} the bit "
                                 "{}: a step of the sum across lanes is missing, or adds another "
                                 "lane",
                                 elements(), with ? "does not have" : "has", bit),
                     predicted, 0.97);
      }
    }
  }

  std::string elements() const {
    return fmt::format("elements of {} along its {}", spec_.name, rows_ ? "rows" : "columns");
  }
  static std::string times(double count) {
    return count == 0   ? "never"
           : count == 1 ? "once"
           : count == 2 ? "twice"
                        : fmt::format("{:.0f} times", count);
  }

  Judge& judge_;
  const Evidence& evidence_;
  std::size_t which_;
  bool rows_;
  TensorSpec spec_;
  std::int64_t extent_;
  bool linear_ = false;
  std::vector<std::pair<std::size_t, std::size_t>> sampled_;  ///< output and element
};

}  // namespace

void offer_lane_sums(Judge& judge) {
  const auto& inputs = judge.evidence().inputs();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!is_floating(inputs[i].spec.dtype)) continue;
    for (const bool rows : {false, true}) LaneAxis(judge, i, rows).offer_steps();
  }
}

}  // namespace greta::tuner
