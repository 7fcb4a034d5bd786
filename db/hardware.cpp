#include "db/hardware.hpp"

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

/// Whether two devices are views of one hardware model through two APIs.
bool share_a_card(const StoredDevice& a, const StoredDevice& b) {
  if (a.info.backend == b.info.backend || a.info.vendor != b.info.vendor) return false;
  if (a.info.is_cpu() || b.info.is_cpu()) return false;
  const auto units = std::pair(a.info.compute_units, b.info.compute_units);
  if (units.first != 0 && units.second != 0 && units.first != units.second) return false;
  return std::any_of(a.cards.begin(), a.cards.end(), [&](const StoredCard& one) {
    return std::any_of(b.cards.begin(), b.cards.end(),
                       [&](const StoredCard& other) { return same_card(one.card, other.card); });
  });
}

}  // namespace

bool HardwareWinners::sure() const {
  return std::all_of(comparisons.begin(), comparisons.end(),
                     [](const Comparison& comparison) { return comparison.sure(); });
}

HardwareGroups::HardwareGroups(const std::vector<StoredDevice>& devices) {
  std::vector<std::size_t> group(devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    group[i] = i;
    for (std::size_t earlier = 0; earlier < i; ++earlier) {
      const bool same = devices[earlier].info.fingerprint() == devices[i].info.fingerprint() ||
                        share_a_card(devices[earlier], devices[i]);
      if (same) std::replace(group.begin(), group.end(), group[earlier], group[i]);
    }
  }
  for (std::size_t i = 0; i < devices.size(); ++i) {
    groups_.emplace(devices[i].info.fingerprint(), group[i]);
  }
}

bool HardwareGroups::same(const DeviceInfo& a, const DeviceInfo& b) const {
  const auto key_a = a.fingerprint(), key_b = b.fingerprint();
  if (key_a == key_b) return true;
  const auto found_a = groups_.find(key_a), found_b = groups_.find(key_b);
  return found_a != groups_.end() && found_b != groups_.end() && found_a->second == found_b->second;
}

HardwareWinners rank_winners(std::vector<StoredWinner> winners,
                             const std::vector<Comparison>& measured) {
  HardwareWinners ranked;
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
