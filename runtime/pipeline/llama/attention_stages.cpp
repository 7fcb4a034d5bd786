#include "runtime/pipeline/llama/attention_stages.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace greta::runtime {
namespace {

/// Weights whose bound is a larger share of them say little about their logarithm.
constexpr double significant = 0.1;

bool all_within(const double* weights, const std::vector<Expected>& expected) {
  for (std::size_t j = 0; j < expected.size(); ++j) {
    // Not a comparison that NaN passes.
    if (!(std::abs(weights[j] - expected[j].value) <= expected[j].bound)) return false;
  }
  return true;
}

/// The logarithms of (weight / expected weight) of a row's keys.
class Ratios {
 public:
  Ratios(const double* weights, const std::vector<Expected>& expected) {
    for (std::size_t j = 0; j < expected.size(); ++j) {
      const auto& [value, bound] = expected[j];
      if (!(value > 0) || bound > significant * value) continue;
      ++visible_;
      if (!(weights[j] > 0) || !std::isfinite(weights[j])) continue;
      logs_.push_back(std::log(weights[j] / value));
      tolerance_ = std::max(tolerance_, 3 * bound / value);
    }
  }

  /// Whether most keys have a ratio, and all of them the same.
  bool constant() const {
    if (logs_.size() < 2 || 2 * logs_.size() < visible_) return false;
    const auto [least, most] = std::minmax_element(logs_.begin(), logs_.end());
    return *most - *least <= tolerance_;
  }
  /// Whether all keys that have a weight have the same ratio.
  bool constant_where_known() const {
    if (logs_.empty()) return false;
    const auto [least, most] = std::minmax_element(logs_.begin(), logs_.end());
    return *most - *least <= tolerance_;
  }
  /// Whether ratios change at few places only: where tiles of keys end.
  bool constant_in_ranges() const {
    constexpr std::size_t shortest = 4;
    std::size_t changes = 0;
    for (std::size_t i = 1; i < logs_.size(); ++i)
      changes += std::abs(logs_[i] - logs_[i - 1]) > tolerance_ ? 1 : 0;
    return logs_.size() >= shortest && shortest * changes <= logs_.size();
  }

 private:
  std::vector<double> logs_;
  std::size_t visible_ = 0;
  double tolerance_ = 0;
};

/// Whether equal weights sum to 1, whichever keys have them.
bool sums_to_one(const double* weights, const std::vector<Expected>& expected) {
  double total = 0, bound = 0;
  for (std::size_t j = 0; j < expected.size(); ++j) {
    total += weights[j];
    bound += expected[j].bound;
  }
  return std::abs(total - 1) <= std::max(2 * bound, 1e-3);
}

}  // namespace

AttentionStages::AttentionStages(const TraceTypes& types, std::int64_t layer, std::int64_t heads,
                                 std::int64_t length, std::int64_t dim)
    : bounds_(types), layer_(layer), heads_(heads), length_(length), dim_(dim) {
  for (StageFinding& finding : worst_) finding.layer = layer_;
  worst_[scores].stage = LlamaStage::attn_scores;
  worst_[softmax].stage = LlamaStage::attn_softmax;
  worst_[sum].stage = LlamaStage::attention;
}

std::vector<Expected> AttentionStages::expected(const stages::Attended& attended) const {
  auto visible = bounds_.attention_weights(attended, dim_);
  visible.resize(static_cast<std::size_t>(length_), Expected{0, 0});
  return visible;
}

StageFinding AttentionStages::worst(std::int64_t row, const double* weights,
                                    const std::vector<Expected>& expected) const {
  StageFinding found;
  double ratio = -1;
  for (std::size_t j = 0; j < expected.size(); ++j) {
    StageFinding one{.layer = layer_,
                     .row = row / heads_,
                     .col = static_cast<std::int64_t>(j),
                     .got = weights[j],
                     .want = expected[j].value,
                     .bound = expected[j].bound,
                     .head = row % heads_};
    if (one.ratio() <= ratio) continue;
    ratio = one.ratio();
    found = one;
  }
  found.passed = ratio <= 1;
  return found;
}

void AttentionStages::note(Part part, const StageFinding& finding) {
  StageFinding& known = worst_[part];
  const bool first_wrong = !finding.passed && wrong_[part] == 0;
  if (!finding.passed) ++wrong_[part];
  if (!first_wrong && (known.head >= 0 && finding.ratio() <= known.ratio())) return;
  if (finding.passed && wrong_[part] > 0) return;
  const LlamaStage stage = known.stage;
  known = finding;
  known.stage = stage;
}

void AttentionStages::add(std::int64_t row, const stages::Attended& attended,
                          const stages::Attended& equal, const double* weights,
                          const double* uniform) {
  const auto want = expected(attended), want_equal = expected(equal);
  const bool right = all_within(weights, want), right_equal = all_within(uniform, want_equal);
  const StageFinding of_weights = worst(row, weights, want);
  const StageFinding of_equal = worst(row, uniform, want_equal);
  if (right && right_equal) {
    note(scores, of_weights);
    note(softmax, of_equal);
    return;
  }
  const Ratios ratios(weights, want);
  if (!right_equal) {
    const bool masked = sums_to_one(uniform, want_equal) && ratios.constant_where_known();
    note(masked ? softmax : sum, of_equal);
    return;
  }
  note(ratios.constant() || ratios.constant_in_ranges() ? softmax : scores, of_weights);
}

std::vector<StageFinding> AttentionStages::findings() const {
  const auto most = std::max_element(std::begin(wrong_), std::end(wrong_)) - std::begin(wrong_);
  std::vector<StageFinding> list{worst_[scores], worst_[softmax]};
  if (wrong_[most] > 0 && most == sum) list.push_back(worst_[sum]);
  for (std::size_t i = 0; i < list.size(); ++i)
    list[i].passed = wrong_[most] == 0 || static_cast<std::ptrdiff_t>(i) != most;
  return list;
}

}  // namespace greta::runtime
