#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "kernels/reference/elements.hpp"
#include "kernels/reference/findings.hpp"
#include "kernels/reference/penalties.hpp"
#include "kernels/reference/philox.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/reference/rows.hpp"
#include "kernels/reference/sample_integers.hpp"

namespace greta::kernels {
namespace sampled {
namespace {

using reference::u;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double full_weight = 0x1p29 - 1;  ///< the largest of kernels' weights, which are integers
constexpr double unit = 1 / full_weight;
constexpr double octaves = 29.001;  ///< a token that is farther away has no weight
constexpr double log2_e = 1.4426950408889634;

/// The settings of a row's draw, with those that are off at values without effect.
struct Settings {
  double temperature = 0;  ///< 0: greedy
  double top_k = infinity;
  double top_p = 1;
  double least = 0;    ///< weight of tokens that min_p keeps
  double uniform = 0;  ///< the random number, in [0, 1)
};

Settings settings_of(const HostTensor& settings, const HostTensor& seeds, std::int64_t row) {
  const auto value = [&](std::int64_t i) {
    return settings.at(static_cast<std::size_t>(row * settings.spec.cols + i));
  };
  const auto seed = [&](std::int64_t i) {
    return static_cast<std::uint32_t>(
        static_cast<std::int64_t>(seeds.at(static_cast<std::size_t>(row * 3 + i))));
  };
  Settings s;
  s.temperature = value(0) > 0x1p-64 ? std::min(value(0), 0x1p128) : 0;
  if (value(1) >= 1 && value(1) < 0x1p31) s.top_k = std::floor(value(1));
  if (value(2) < 1) s.top_p = std::max(0.0, value(2));
  if (value(3) > 0) {
    s.least = std::min(full_weight, std::floor(std::min(1.0, value(3)) * 0x1p29)) * unit;
  }
  const auto random = philox4x32({seed(2), 0, 0, 0}, {seed(0), seed(1)});
  s.uniform = (random[1] + random[0] * 0x1p-32) * 0x1p-32;
  return s;
}

Draw draw_of(const HostTensor& settings, const HostTensor& seeds, std::int64_t row) {
  const auto setting = [&](std::int64_t i) {
    return static_cast<float>(settings.at(static_cast<std::size_t>(row * settings.spec.cols + i)));
  };
  const auto seed = [&](std::int64_t i) {
    return static_cast<std::uint32_t>(
        static_cast<std::int64_t>(seeds.at(static_cast<std::size_t>(row * 3 + i))));
  };
  return {setting(0), setting(1), setting(2), setting(3), {seed(0), seed(1)}, seed(2)};
}

/// A token with a weight, the largest being 1.
struct Token {
  std::size_t column = 0;
  double logit = 0;
  double distance = 0;                     ///< to the largest logit, in octaves of the weight
  double weight = 0, error = 0;            ///< and the bound of its error in a kernel
  bool possible = false, certain = false;  ///< whether it may be, or must be kept
};

/// Bounds the error of a distance: a difference and a product in f32, a scale from a quotient that
/// is rounded towards 0 and a constant, and 24 fractional bits.
double distance_error(double distance) {
  return distance == 0 ? 0 : 4.4 * u * distance + 0x1p-24;
}

/// A row's token, and what FP64 arithmetic says of it.
struct Outcome {
  std::int64_t token = -1;              ///< that of FP64 arithmetic
  std::vector<std::int64_t> permitted;  ///< all tokens within the bounds
  std::int64_t exact = -1;              ///< that of the integers of kernels, if it is permitted
};

/// Tokens by decreasing logits; equal logits by column.
class Ranking {
 public:
  Ranking(std::vector<Token> tokens, const Settings& settings)
      : tokens_(std::move(tokens)), settings_(settings), n_(tokens_.size()) {
    weights_.resize(n_ + 1);
    errors_.resize(n_ + 1);
    for (std::size_t i = 0; i < n_; ++i) {
      weights_[i + 1] = weights_[i] + tokens_[i].weight;
      errors_[i + 1] = errors_[i] + tokens_[i].error;
    }
  }

  /// Marks the tokens that may be and that must be kept.
  void mark() {
    const auto by_least = [&](double sign) {
      return static_cast<std::size_t>(std::find_if(tokens_.begin(), tokens_.end(),
                                                   [&](const Token& t) {
                                                     return t.weight + sign * t.error <
                                                            settings_.least;
                                                   }) -
                                      tokens_.begin());
    };
    const std::size_t most = by_least(1), sure = by_least(-1);
    const auto up_to_k = [&](std::size_t count) {
      return static_cast<std::size_t>(std::min(static_cast<double>(count), settings_.top_k));
    };
    const std::size_t largest_set = up_to_k(most), smallest_set = up_to_k(sure);
    const double p = settings_.top_p;
    const double high = std::max(unit, p * (weights_[largest_set] + errors_[largest_set]));
    const double mass = weights_[smallest_set] - errors_[smallest_set];
    const double low = p * mass - mass * 0x1p-32 - unit;
    for (std::size_t first = 0; first < n_;) {
      std::size_t end = first + 1;
      while (end < n_ && tokens_[end].logit == tokens_[first].logit) ++end;
      const auto [from, to] = near(first, end);
      for (std::size_t i = first; i < end; ++i) {
        Token& t = tokens_[i];
        const auto before = static_cast<double>(from + (i - first));
        const double mass_before = weights_[from] - errors_[from] + weights_[i] - weights_[first] -
                                   errors_[i] + errors_[first];
        t.possible = i < most && before < settings_.top_k &&
                     (p >= 1 || before == 0 || mass_before < high + slack());
        const auto may_precede = static_cast<double>(i + (to - end));
        const double mass_at_most =
            weights_[i] + errors_[i] + weights_[to] - weights_[end] + errors_[to] - errors_[end];
        t.certain = i < sure && may_precede < settings_.top_k &&
                    (p >= 1 || may_precede == 0 || mass_at_most < low - slack());
      }
      first = end;
    }
  }

  /// Returns the number of tokens that FP64 arithmetic keeps.
  std::size_t kept() const {
    std::size_t count = 0;
    while (count < n_ && tokens_[count].weight >= settings_.least &&
           static_cast<double>(count) < settings_.top_k) {
      ++count;
    }
    if (settings_.top_p >= 1) return count;
    const double enough = settings_.top_p * weights_[count];
    std::size_t kept = std::min<std::size_t>(count, 1);
    while (kept < count && weights_[kept] < enough) ++kept;
    return kept;
  }

  std::vector<Token>& tokens() { return tokens_; }
  /// Of sums in FP64, which are exact if all tokens have the largest weight.
  double slack() const { return errors_[n_] > 0 ? 1e-12 * weights_[n_] : 0; }

 private:
  /// Returns the tokens whose distances may compare otherwise to those of tokens `first` to end -
  /// 1, which are equal.
  std::pair<std::size_t, std::size_t> near(std::size_t first, std::size_t end) const {
    const double distance = tokens_[first].distance;
    std::size_t from = first, to = end;
    const auto close = [&](const Token& t) {
      return std::abs(t.distance - distance) <=
             distance_error(t.distance) + distance_error(distance);
    };
    while (from > 0 && close(tokens_[from - 1])) --from;
    while (to < n_ && close(tokens_[to])) ++to;
    return {from, to};
  }

  std::vector<Token> tokens_;
  Settings settings_;
  std::size_t n_;
  std::vector<double> weights_, errors_;  ///< sums over the tokens before
};

/// Returns the tokens with a weight, in no order.
std::vector<Token> weigh(const HostTensor& x, std::int64_t row, double largest,
                         double temperature) {
  std::vector<Token> tokens;
  const auto cols = static_cast<std::size_t>(x.spec.cols);
  for (std::size_t column = 0; column < cols; ++column) {
    const double logit = x.at(static_cast<std::size_t>(row) * cols + column);
    if (std::isnan(logit)) continue;
    const double difference = logit == largest ? 0 : largest - logit;
    if (difference >= 0x1.FFFFFFp127) continue;
    const double distance = difference * log2_e / temperature;
    if (distance > octaves) continue;
    Token token{column, logit, distance, std::exp2(-distance)};
    if (distance > 0) {
      token.error = token.weight * (0.7 * distance_error(distance) + 0x1p-22) + unit;
    }
    tokens.push_back(token);
  }
  return tokens;
}

std::int64_t drawn_in_fp64(std::vector<Token> tokens, std::size_t kept, double uniform) {
  tokens.resize(kept);
  std::sort(tokens.begin(), tokens.end(),
            [](const Token& a, const Token& b) { return a.column < b.column; });
  double total = 0;
  for (const Token& t : tokens) total += t.weight;
  double left = uniform * total;
  for (const Token& t : tokens) {
    if (left < t.weight) return static_cast<std::int64_t>(t.column);
    left -= t.weight;
  }
  return static_cast<std::int64_t>(tokens.back().column);
}

Outcome outcome_of(const HostTensor& x, std::int64_t row, const Settings& settings) {
  const auto cols = static_cast<std::size_t>(x.spec.cols);
  std::size_t best = cols;
  double largest = -infinity;
  for (std::size_t column = 0; column < cols; ++column) {
    const double logit = x.at(static_cast<std::size_t>(row) * cols + column);
    if (!(logit > largest)) continue;
    largest = logit;
    best = column;
  }
  if (best == cols) return {-1, {-1}};
  if (settings.temperature == 0) {
    return {static_cast<std::int64_t>(best), {static_cast<std::int64_t>(best)}};
  }
  std::vector<Token> tokens = weigh(x, row, largest, settings.temperature);
  std::sort(tokens.begin(), tokens.end(), [](const Token& a, const Token& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.column < b.column;
  });
  Ranking ranking(std::move(tokens), settings);
  ranking.mark();
  Outcome outcome{drawn_in_fp64(ranking.tokens(), ranking.kept(), settings.uniform), {}};
  std::vector<Token>& all = ranking.tokens();
  std::sort(all.begin(), all.end(),
            [](const Token& a, const Token& b) { return a.column < b.column; });
  double least_total = 0, most_total = 0;
  for (const Token& t : all) {
    if (t.certain) least_total += std::max(0.0, t.weight - t.error);
    if (t.possible) most_total += t.weight + t.error;
  }
  double least_before = 0, most_before = 0;
  for (const Token& t : all) {
    if (t.possible) most_before += t.weight + t.error;
    if (t.possible && least_before <= settings.uniform * most_total + ranking.slack() &&
        most_before > settings.uniform * least_total - ranking.slack()) {
      outcome.permitted.push_back(static_cast<std::int64_t>(t.column));
    }
    if (t.certain) least_before += std::max(0.0, t.weight - t.error);
  }
  return outcome;
}

class SampleReference final : public Reference {
 public:
  SampleReference(const Problem& problem, const std::vector<HostTensor>& inputs)
      : token_{"token", Role::output, DType::i32, problem.dim("rows"), 1},
        settings_(keep_tensor(inputs, "settings")),
        seeds_(keep_tensor(inputs, "seeds")) {
    if (problem.dim("history", 0) > 0) {
      penalised_ = std::make_unique<PenalisedLogits>(inputs);
      logits_ = elements_reference({penalised_->expected()});
    }
    outcomes_ = outcomes(penalised_ ? penalised_->nearest() : *keep_tensor(inputs, "x"));
  }

  /// Tokens are checked with the logits that the kernel penalised, which are checked themselves.
  Verdict check(const std::vector<HostTensor>& outputs) const override {
    const HostTensor& token = outputs.back();
    if (!logits_) return check_tokens(token, outcomes_);
    const Verdict logits = logits_->check({outputs.front()});
    if (!logits.passed) return logits;
    const Verdict tokens = check_tokens(token, outcomes(packed(outputs.front())));
    return worse(logits, tokens);
  }

  std::optional<std::vector<std::vector<Expected>>> expected() const override {
    std::vector<Expected> tokens;
    for (const Outcome& outcome : outcomes_) {
      // Without the kernel's own logits, such a row's token is not known.
      const bool unknown =
          penalised_ && penalised_->ambiguous(static_cast<std::int64_t>(tokens.size()));
      tokens.push_back({static_cast<double>(outcome.exact), unknown ? infinity : 0});
    }
    if (!logits_) return std::vector<std::vector<Expected>>{std::move(tokens)};
    auto all = logits_->expected();
    if (all) all->push_back(std::move(tokens));
    return all;
  }

 private:
  std::vector<Outcome> outcomes(const HostTensor& x) const {
    return rows::for_each_row(token_.rows, [&](std::int64_t row) {
      Outcome outcome = outcome_of(x, row, settings_of(*settings_, *seeds_, row));
      outcome.exact = drawn(x, row, draw_of(*settings_, *seeds_, row));
      if (outcome.exact != outcome.token &&
          std::find(outcome.permitted.begin(), outcome.permitted.end(), outcome.exact) ==
              outcome.permitted.end()) {
        outcome.exact = outcome.token;
      }
      return outcome;
    });
  }

  Verdict check_tokens(const HostTensor& token, const std::vector<Outcome>& outcomes) const {
    Findings findings(token_.rows, 1);
    findings.scan(token, 0, token_.rows);
    for (std::int64_t row = 0; row < token_.rows; ++row) {
      const Outcome& outcome = outcomes[static_cast<std::size_t>(row)];
      findings.compare(row, 0, token.at(static_cast<std::size_t>(row)),
                       static_cast<double>(outcome.exact), 0);
    }
    return findings.verdict("full");
  }

  TensorSpec token_;
  KeptTensor settings_, seeds_;
  std::unique_ptr<PenalisedLogits> penalised_;
  std::unique_ptr<Reference> logits_;
  std::vector<Outcome> outcomes_;
};

}  // namespace
}  // namespace sampled

std::unique_ptr<Reference> sample_reference(const Problem& problem,
                                            const std::vector<HostTensor>& inputs, std::uint64_t) {
  return std::make_unique<sampled::SampleReference>(problem, inputs);
}

}  // namespace greta::kernels
