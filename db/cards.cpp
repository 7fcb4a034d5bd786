#include "db/cards.hpp"

#include <algorithm>
#include <utility>

namespace greta::db {
namespace {

/// Returns the comparison of two winners in alternating turns, or nullptr if there is none.
const Comparison* find(const StoredWinner& a, const StoredWinner& b,
                       const std::vector<Comparison>& measured) {
  for (const auto& comparison : measured) {
    if ((comparison.faster == a.session && comparison.slower == b.session) ||
        (comparison.faster == b.session && comparison.slower == a.session)) {
      return &comparison;
    }
  }
  return nullptr;
}

}  // namespace

bool CardWinners::sure() const {
  return std::all_of(comparisons.begin(), comparisons.end(),
                     [](const Comparison& comparison) { return comparison.sure(); });
}

bool of_one_card(const DeviceInfo& a, const DeviceInfo& b) {
  if (a.backend == b.backend) return a.fingerprint() == b.fingerprint();
  return a.vendor == b.vendor && same_card(a, b);
}

CardWinners rank_winners(std::vector<StoredWinner> winners,
                         const std::vector<Comparison>& measured) {
  CardWinners ranked;
  if (winners.empty()) return ranked;
  std::stable_sort(winners.begin(), winners.end(), [](const auto& a, const auto& b) {
    return a.winner.measurement.median_us < b.winner.measurement.median_us;
  });
  // Measurements in alternating turns can resolve close medians that two sessions can't.
  std::size_t first = 0;
  for (std::size_t i = 1; i < winners.size(); ++i) {
    const auto* turns = find(winners[first], winners[i], measured);
    if (turns != nullptr && turns->faster == winners[i].session) first = i;
  }
  std::rotate(winners.begin(), winners.begin() + static_cast<std::ptrdiff_t>(first),
              winners.begin() + static_cast<std::ptrdiff_t>(first) + 1);
  for (std::size_t i = 1; i < winners.size(); ++i) {
    const auto* turns = find(winners[0], winners[i], measured);
    ranked.comparisons.push_back(
        turns != nullptr ? *turns
                         : compare_certified(winners[0].session, winners[0].winner.measurement,
                                             winners[i].session, winners[i].winner.measurement));
  }
  ranked.winners = std::move(winners);
  return ranked;
}

}  // namespace greta::db
