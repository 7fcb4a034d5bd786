#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/planning/number_attribute.hpp"
#include "kernels/reference/elements.hpp"
#include "kernels/reference/findings.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/reference/rows.hpp"

namespace greta::kernels {
namespace routed {
namespace {

using reference::u;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double flushed = 0x1p-126;

/// A number and the absolute error of a kernel's.
struct Estimate {
  double value = 0;
  double error = 0;
};

/// Returns e^(x - y), x <= y, with its relative error.
Estimate decay(double x, double y) {
  if (x == y) return {1, 0};
  const double distance = y - x;
  if (distance == infinity) return {0, 0};
  return {std::exp(-distance), u * (6 + 5 * distance)};
}

/// One expert of a token.
struct Expert {
  double logit = 0, bias = 0;
  Estimate key;  ///< what it is selected by
  std::size_t group = 0;
};

/// Whether a group of experts has picks in every correct kernel, in some, or in none.
enum class Chosen { surely, possibly, never };

struct Group {
  Estimate score;
  Chosen chosen = Chosen::surely;
  bool expected = true;  ///< whether it has picks in FP64
};

/// The experts of a token, and their groups.
struct Candidates {
  std::vector<Expert> experts;
  std::vector<Group> groups;

  bool certain() const {
    return std::none_of(groups.begin(), groups.end(),
                        [](const Group& group) { return group.chosen == Chosen::possibly; });
  }
};

/// Whether the first expert comes before the other in every correct kernel.
bool surely_before(const Candidates& all, std::size_t a, std::size_t b) {
  const Expert &x = all.experts[a], &y = all.experts[b];
  const Chosen of_x = all.groups[x.group].chosen, of_y = all.groups[y.group].chosen;
  if (of_x == Chosen::never && of_y == Chosen::surely) return false;
  if (of_x == Chosen::surely && of_y == Chosen::never) return true;
  const bool exact = x.key.error == 0 && y.key.error == 0;
  const bool same = x.logit == y.logit && x.bias == y.bias;
  if (same || (exact && x.key.value == y.key.value)) return a < b;
  return x.key.value - x.key.error > y.key.value + y.key.error;
}

class Router {
 public:
  Router(const Problem& problem, const std::vector<HostTensor>& inputs)
      : experts_(static_cast<std::size_t>(problem.dim("experts"))),
        top_k_(static_cast<std::size_t>(problem.dim("top_k"))),
        sigmoid_(problem.attribute("score", "softmax") == "sigmoid"),
        renormalise_(problem.attribute("renormalise", "yes") == "yes"),
        scale_(finite_number(problem.attribute("scale", "1")).value()),
        groups_(static_cast<std::size_t>(whole_number(problem.attribute("groups", "1")).value())),
        top_groups_(
            static_cast<std::size_t>(whole_number(problem.attribute("top_groups", "1")).value())),
        logits_(keep_tensor(inputs, "logits")) {
    if (problem.attribute("bias", "none") == "expert") bias_ = keep_tensor(inputs, "bias");
  }

  std::size_t top_k() const { return top_k_; }
  /// Returns the largest possible weight.
  double most() const { return std::abs(scale_); }

  std::size_t top_groups() const { return top_groups_; }

  Candidates candidates(std::int64_t token) const {
    Candidates all{experts(token), std::vector<Group>(groups_)};
    if (groups_ > 1) choose_groups(all);
    return all;
  }

  /// Returns all experts, in the order in which they are selected.
  std::vector<std::size_t> order(const Candidates& candidates) const {
    std::vector<std::size_t> all = every();
    const auto expected = [&](const Expert& expert) {
      return candidates.groups[expert.group].expected;
    };
    std::stable_sort(all.begin(), all.end(), [&](std::size_t a, std::size_t b) {
      const Expert &x = candidates.experts[a], &y = candidates.experts[b];
      return expected(x) != expected(y) ? expected(x) : x.key.value > y.key.value;
    });
    return all;
  }

  /// Returns the weights of the experts that a kernel has picked.
  std::vector<Expected> weights(const std::vector<Expert>& list,
                                const std::vector<std::size_t>& picked) const {
    const std::vector<Estimate> scores = scores_of(list, picked, renormalise_);
    double sum = 1, share = 0;
    if (renormalise_) {
      sum = share = 0;
      for (const Estimate& score : scores) {
        sum += score.value;
        share += score.error;
      }
      if (sum > 0) share = share / sum + u * static_cast<double>(top_k_) + 5 * u;
    }
    std::vector<Expected> weights;
    for (const Estimate& score : scores) {
      const double value = sum > 0 ? score.value / sum * scale_ : 0;
      const double error = sum > 0 ? score.error / sum * most() : 0;
      const double roundings = std::abs(value) * (share + (scale_ == 1 ? 0 : u));
      weights.push_back(rounded(DType::f32, value, error + roundings + flushed * most()));
    }
    return weights;
  }

 private:
  /// Returns the experts of a token, with their keys.
  std::vector<Expert> experts(std::int64_t token) const {
    std::vector<Expert> list(experts_);
    for (std::size_t i = 0; i < experts_; ++i) {
      const double logit = logits_->at(static_cast<std::size_t>(token) * experts_ + i);
      list[i].logit = std::isnan(logit) ? -infinity : logit;
      list[i].key.value = list[i].logit;
      list[i].group = i / (experts_ / groups_);
    }
    if (!bias_) return list;
    const std::vector<Estimate> scores = scores_of(list, every(), false);
    for (std::size_t i = 0; i < experts_; ++i) {
      list[i].bias = bias_->at(i);
      const double key = scores[i].value + list[i].bias;
      list[i].key = {key, scores[i].error + u * std::abs(key) + flushed};
      if (!std::isfinite(key)) list[i].key = {std::isnan(key) ? -infinity : key, 0};
    }
    return list;
  }

  /// Returns the number by which groups are compared: their largest key, or with a bias the sum of
  /// the two largest, each of which may be another expert's within the errors.
  Estimate score_of_group(const Candidates& all, std::size_t group) const {
    const std::size_t size = experts_ / groups_;
    Estimate first{-infinity, 0}, second{-infinity, 0};
    double error = 0;
    for (std::size_t i = group * size; i < (group + 1) * size; ++i) {
      const Estimate& key = all.experts[i].key;
      error = std::max(error, key.error);
      if (key.value > first.value) {
        second = first;
        first = key;
      } else if (key.value > second.value) {
        second = key;
      }
    }
    if (!bias_) return {first.value, 0};
    const double sum = first.value + second.value;
    if (!std::isfinite(sum)) return {std::isnan(sum) ? -infinity : sum, 0};
    return {sum, 2 * error + u * std::abs(sum) + flushed};
  }

  void choose_groups(Candidates& all) const {
    for (std::size_t g = 0; g < groups_; ++g) all.groups[g].score = score_of_group(all, g);
    const auto& groups = all.groups;
    const auto before = [&](std::size_t a, std::size_t b) {
      const Estimate &x = groups[a].score, &y = groups[b].score;
      if (x.value == y.value && x.error == 0 && y.error == 0) return a < b;
      return x.value - x.error > y.value + y.error;
    };
    for (std::size_t g = 0; g < groups_; ++g) {
      std::size_t expected = 0, surely = 0, possibly = 0;
      for (std::size_t h = 0; h < groups_; ++h) {
        if (h == g) continue;
        const double x = groups[h].score.value, y = groups[g].score.value;
        expected += x > y || (x == y && h < g);
        surely += before(h, g);
        possibly += !before(g, h);
      }
      all.groups[g].expected = expected < top_groups_;
      all.groups[g].chosen = possibly < top_groups_ ? Chosen::surely
                             : surely < top_groups_ ? Chosen::possibly
                                                    : Chosen::never;
    }
  }

  std::vector<std::size_t> every() const {
    std::vector<std::size_t> all(experts_);
    std::iota(all.begin(), all.end(), std::size_t{0});
    return all;
  }

  /// Returns the scores of these experts: relative to a factor that they have in common, or the
  /// scores themselves.
  std::vector<Estimate> scores_of(const std::vector<Expert>& list,
                                  const std::vector<std::size_t>& chosen, bool relative) const {
    const auto largest_of = [&](const std::vector<std::size_t>& some) {
      double largest = -infinity;
      for (const std::size_t i : some) largest = std::max(largest, list[i].logit);
      return largest;
    };
    const double largest = largest_of(relative ? chosen : every());
    double base = largest;
    if (sigmoid_) base = relative ? std::min(largest, 0.0) : 0;
    std::vector<Estimate> scores(chosen.size());
    if (base == -infinity) return scores;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      scores[i] = sigmoid_ ? sigmoid(list[chosen[i]].logit, base)
                           : absolute(decay(list[chosen[i]].logit, base));
    }
    return sigmoid_ || relative ? scores : over_total(std::move(scores), list, largest);
  }

  static Estimate absolute(Estimate one) { return {one.value, one.value * one.error}; }

  /// Returns the sigmoid of a logit over e^base, base <= 0.
  static Estimate sigmoid(double logit, double base) {
    const Estimate numerator = decay(std::min(logit, 0.0), base),
                   small = decay(-std::abs(logit), 0);
    const double value = numerator.value / (1 + small.value);
    const double share = small.value / (1 + small.value);
    return absolute({value, numerator.error + share * small.error + 6 * u});
  }

  std::vector<Estimate> over_total(std::vector<Estimate> scores, const std::vector<Expert>& list,
                                   double largest) const {
    constexpr double most_additions = 37;  // 32 of a thread, and a tree over its lanes
    double sum = 0, errors = 0;
    for (const Expert& expert : list) {
      const Estimate one = absolute(decay(expert.logit, largest));
      sum += one.value;
      errors += one.error;
    }
    const auto count = static_cast<double>(list.size());
    const double of_sum = errors / sum + std::min(count, most_additions) * u;
    for (Estimate& score : scores) {
      score = {score.value / sum, score.error / sum + score.value / sum * (of_sum + 5 * u)};
    }
    return scores;
  }

  std::size_t experts_, top_k_;
  bool sigmoid_, renormalise_;
  double scale_;
  std::size_t groups_, top_groups_;
  KeptTensor logits_, bias_;
};

class RouteReference final : public Reference {
 public:
  RouteReference(const Problem& problem, const std::vector<HostTensor>& inputs)
      : router_(problem, inputs), tokens_(problem.dim("tokens")) {}

  Verdict check(const std::vector<HostTensor>& outputs) const override {
    const HostTensor ids = packed(tensor_named(outputs, "ids"));
    const HostTensor weights = packed(tensor_named(outputs, "weights"));
    const auto top_k = static_cast<std::int64_t>(router_.top_k());
    return find_in_parts(tokens_, top_k, tokens_,
                         [&](std::int64_t first, std::int64_t last, Findings& part) {
                           for (std::int64_t token = first; token < last; ++token) {
                             check_token(ids, weights, token, part);
                           }
                         })
        .verdict("full");
  }

  std::optional<std::vector<std::vector<Expected>>> expected() const override {
    std::vector<Expected> ids, weights;
    for (std::int64_t token = 0; token < tokens_; ++token) {
      const Candidates list = router_.candidates(token);
      std::vector<std::size_t> order = router_.order(list);
      bool certain = list.certain();
      for (std::size_t rank = 0; rank < router_.top_k(); ++rank) {
        const double bound = list.certain() ? possible_distance(list, order, rank)
                                            : static_cast<double>(order.size());
        certain = certain && bound == 0;
        ids.push_back({static_cast<double>(order[rank]), bound});
      }
      order.resize(router_.top_k());
      for (Expected& weight : router_.weights(list.experts, order)) {
        weights.push_back(certain ? weight : Expected{weight.value, router_.most()});
      }
    }
    return std::vector<std::vector<Expected>>{std::move(ids), std::move(weights)};
  }

 private:
  /// Returns how far from the expert of this rank those are that may have the rank instead.
  static double possible_distance(const Candidates& list, const std::vector<std::size_t>& order,
                                  std::size_t rank) {
    const std::size_t own = order[rank];
    double distance = 0;
    const auto add = [&](std::size_t other) {
      const std::size_t far = other > own ? other - own : own - other;
      distance = std::max(distance, static_cast<double>(far));
    };
    for (std::size_t i = rank; i-- > 0 && !surely_before(list, order[i], own);) add(order[i]);
    for (std::size_t i = rank + 1; i < order.size() && !surely_before(list, own, order[i]); ++i) {
      add(order[i]);
    }
    return distance;
  }

  /// Returns the experts of the output if they are different ones; else none.
  std::vector<std::size_t> picks_of(const HostTensor& ids, std::int64_t token,
                                    std::size_t experts) const {
    std::vector<std::size_t> picked;
    std::vector<bool> taken(experts);
    for (std::size_t rank = 0; rank < router_.top_k(); ++rank) {
      const double id = ids.at(static_cast<std::size_t>(token) * router_.top_k() + rank);
      if (!(id >= 0 && id < static_cast<double>(experts))) return {};
      const auto expert = static_cast<std::size_t>(id);
      if (taken[expert]) return {};
      taken[expert] = true;
      picked.push_back(expert);
    }
    return picked;
  }

  /// Returns which groups a kernel has surely chosen that has these picks; none if it has chosen
  /// one that it must not, or too many.
  std::vector<bool> groups_of(const Candidates& list,
                              const std::vector<std::size_t>& picked) const {
    std::vector<bool> chosen;
    for (const Group& group : list.groups) chosen.push_back(group.chosen == Chosen::surely);
    for (const std::size_t expert : picked) {
      const std::size_t group = list.experts[expert].group;
      if (list.groups[group].chosen == Chosen::never) return {};
      chosen[group] = true;
    }
    const auto count = static_cast<std::size_t>(std::count(chosen.begin(), chosen.end(), true));
    return list.groups.size() > 1 && count > router_.top_groups() ? std::vector<bool>{} : chosen;
  }

  /// Returns whether surely no expert of the chosen groups comes before one that is picked earlier.
  static bool in_order(const Candidates& list, const std::vector<std::size_t>& picked,
                       const std::vector<bool>& chosen) {
    std::vector<bool> taken(list.experts.size());
    for (const std::size_t expert : picked) {
      taken[expert] = true;
      for (std::size_t other = 0; other < taken.size(); ++other) {
        if (!taken[other] && chosen[list.experts[other].group] &&
            surely_before(list, other, expert)) {
          return false;
        }
      }
    }
    return true;
  }

  /// Returns the experts of the output if a correct kernel may pick them, else what is expected.
  std::vector<std::size_t> accepted(const HostTensor& ids, std::int64_t token,
                                    const Candidates& list) const {
    std::vector<std::size_t> picked = picks_of(ids, token, list.experts.size());
    const std::vector<bool> chosen = groups_of(list, picked);
    if (!picked.empty() && !chosen.empty() && in_order(list, picked, chosen)) return picked;
    std::vector<std::size_t> expected = router_.order(list);
    expected.resize(router_.top_k());
    return expected;
  }

  void check_token(const HostTensor& ids, const HostTensor& weights, std::int64_t token,
                   Findings& findings) const {
    const Candidates list = router_.candidates(token);
    const std::vector<std::size_t> picked = accepted(ids, token, list);
    const std::vector<Expected> expected = router_.weights(list.experts, picked);
    for (std::size_t rank = 0; rank < picked.size(); ++rank) {
      const std::size_t at = static_cast<std::size_t>(token) * picked.size() + rank;
      const auto col = static_cast<std::int64_t>(rank);
      findings.compare(token, col, ids.at(at), static_cast<double>(picked[rank]), 0);
      findings.compare(token, col, weights.at(at), expected[rank].value, expected[rank].bound);
    }
  }

  Router router_;
  std::int64_t tokens_;
};

}  // namespace
}  // namespace routed

std::unique_ptr<Reference> route_reference(const Problem& problem,
                                           const std::vector<HostTensor>& inputs, std::uint64_t) {
  return std::make_unique<routed::RouteReference>(problem, inputs);
}

}  // namespace greta::kernels
