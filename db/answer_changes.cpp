#include "db/answer_changes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace greta::db {
namespace {

/// A quantity of which more is better, with its interval.
struct Speed {
  double estimate = 0, low = 0, high = 0;
};

Speed speed_over_default(const Winner& winner) {
  if (winner.is_default) return {1, 1, 1};
  return {winner.speedup, winner.speedup_low, winner.speedup_high};
}

// Times of one kernel on two cards of a model differ: on H200s by up to 10 % or, for launches of a
// few microseconds, by 1 µs. Half of that is allowed on each side.
constexpr double half_ratio = 1.05, half_us = 0.5;

Speed speed_of_time(const Winner& winner) {
  constexpr double least_us = 1e-3;
  const Measurement& time = winner.measurement;
  const double fast_us = std::max(least_us, time.low_us / half_ratio - half_us);
  const double slow_us = time.high_us * half_ratio + half_us;
  return {1 / time.median_us, 1 / slow_us, 1 / fast_us};
}

// Whether two times differ by more than those of one kernel on two cards do.
bool differ(double a_us, double b_us) {
  const double low = std::min(a_us, b_us), high = std::max(a_us, b_us);
  return high > low * half_ratio * half_ratio + 2 * half_us;
}

// Ratios are over the default of their time. Templates are the sources of kernels.
bool comparable_ratios(const StoredWinner& before, const StoredWinner& after) {
  return before.provenance.template_key == after.provenance.template_key &&
         has_ratio(before.winner) && has_ratio(after.winner);
}

// A default may also change with the code that chooses it, which shows in its configuration or in
// its time.
bool same_default(const Winner& old, const Winner& now) {
  if (old.is_default && now.is_default) return old.config == now.config;
  return !differ(old.default_us, now.default_us);
}

void judge(const Speed& old, const Speed& now, AnswerChange& change) {
  change.ratio = now.estimate / old.estimate;
  if (now.low > old.high) change.change = Change::better;
  if (now.high < old.low) change.change = Change::worse;
}

std::string differing(const Provenance& before, const Provenance& after) {
  std::vector<std::string> parts;
  const auto add = [&](std::string_view what, const std::string& old, const std::string& now) {
    if (old != now) parts.push_back(fmt::format("{}: {} instead of {}", what, now, old));
  };
  add("driver", before.driver, after.driver);
  add("compiler", before.compiler, after.compiler);
  return fmt::format("{}", fmt::join(parts, "; "));
}

AnswerChange compared(const StoredWinner& before, const StoredWinner& after) {
  AnswerChange change{Change::same, before, after, 1,
                      differing(before.provenance, after.provenance)};
  const bool same_templates = before.provenance.template_key == after.provenance.template_key;
  if (same_templates && before.winner.config == after.winner.config) return change;
  const Winner &old = before.winner, &now = after.winner;
  const bool ratios = comparable_ratios(before, after);
  if (ratios && same_default(old, now)) {
    judge(speed_over_default(old), speed_over_default(now), change);
    return change;
  }
  judge(speed_of_time(old), speed_of_time(now), change);
  // Wide intervals of times decide nothing. If the medians differ by more than cards do, the ratios
  // decide.
  if (ratios && change.change == Change::same &&
      differ(old.measurement.median_us, now.measurement.median_us)) {
    AnswerChange by_ratio = change;
    judge(speed_over_default(old), speed_over_default(now), by_ratio);
    const bool agree = (by_ratio.ratio < 1) == (change.ratio < 1);
    if (agree) change.change = by_ratio.change;
  }
  return change;
}

}  // namespace

std::string_view to_string(Change change) {
  switch (change) {
    case Change::same:
      return "same";
    case Change::better:
      return "better";
    case Change::worse:
      return "worse";
    case Change::lost:
      return "lost";
    case Change::added:
      return "new";
  }
  return {};
}

std::vector<AnswerChange> answer_changes(const std::vector<StoredWinner>& before,
                                         const std::vector<StoredWinner>& after) {
  std::map<Question, const StoredWinner*> answers;
  for (const StoredWinner& winner : after) answers.emplace(question_of(winner), &winner);
  std::vector<AnswerChange> changes;
  std::set<Question> seen;
  for (const StoredWinner& old : before) {
    if (!seen.insert(question_of(old)).second) continue;
    const auto found = answers.find(question_of(old));
    if (found == answers.end()) {
      changes.push_back({Change::lost, old, std::nullopt, 0, {}});
    } else {
      changes.push_back(compared(old, *found->second));
    }
  }
  for (const StoredWinner& winner : after) {
    if (seen.insert(question_of(winner)).second) {
      changes.push_back({Change::added, std::nullopt, winner, 0, {}});
    }
  }
  return changes;
}

}  // namespace greta::db
