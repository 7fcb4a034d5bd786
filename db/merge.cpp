#include "db/merge.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "db/enum_text.hpp"
#include "db/json.hpp"
#include "kernels/chains/chains.hpp"

namespace greta::db {
namespace {

auto key_of(const StoredWinner& result) {
  return std::tuple(question_of(result), result.provenance.driver, result.provenance.compiler,
                    result.provenance.template_key);
}

/// Replaces bytes of damaged text that are not UTF-8.
std::string text_of(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Returns a result's content without its location.
std::string content(const StoredWinner& result) {
  nlohmann::json regret;
  if (result.regret) {
    regret = {result.regret->neighbour, json_number(result.regret->ratio),
              to_string(result.regret->source)};
  }
  return text_of({to_json(result.winner), result.provenance.greta_version,
                  result.provenance.started_utc, regret});
}

/// Returns all of a device as text.
std::string text_of(const StoredDevice& device) {
  nlohmann::json cards = nlohmann::json::array();
  for (const auto& [card, first_seen, last_seen] : device.cards) {
    cards.push_back({card.uuid, card.pci_address, first_seen, last_seen});
  }
  return text_of({to_json(device.info), device.first_seen_utc, device.last_seen_utc, cards});
}

double median_of(const StoredWinner& result) {
  const double us = result.winner.measurement.median_us;
  return std::isnan(us) ? HUGE_VAL : us;
}

/// Returns what the better of two results has less of. The time of a chain's choice is that of a
/// model's whole phase, which differs between models: there the gain decides.
double cost_of(const StoredWinner& result) {
  if (kernels::is_chain(result.problem.op)) return -result.winner.speedup_low;
  return median_of(result);
}

auto rank(const StoredWinner& result) {
  const auto samples = result.winner.measurement.samples_us.size();
  return std::tuple(!is_certified(result.winner), cost_of(result),
                    -static_cast<std::int64_t>(samples), !result.regret.has_value());
}

void join_results(const Contents& ours, const std::vector<StoredWinner>& theirs, Merge& merge) {
  const std::vector<StoredWinner>& mine = ours.results;
  std::map<decltype(key_of(mine.front())), const StoredWinner*> known;
  std::map<Question, const Config*> answered;  // the latest comes first
  for (const auto& result : mine) {
    known.emplace(key_of(result), &result);
    answered.emplace(question_of(result), &result.winner.config);
  }
  std::map<Question, const Config*> pinned;
  for (const Pin& pin : ours.pins) {
    const auto answer = answered.find(pin.question);
    if (answer != answered.end()) pinned.insert(*answer);
  }
  MergeReport& report = merge.report;
  for (const auto& result : theirs) {
    report.uncertified += is_certified(result.winner) ? 0 : 1;
    const auto frozen = pinned.find(question_of(result));
    if (frozen != pinned.end() && *frozen->second != result.winner.config) {
      ++report.pinned;
      continue;
    }
    const auto found = known.find(key_of(result));
    if (found == known.end()) {
      ++report.added;
      report.side_by_side += answered.count(question_of(result));
      merge.write.results.push_back(result);
    } else if (is_better(result, *found->second)) {
      ++report.replaced;
      report.conflicts.push_back({result, *found->second, false});
      merge.write.results.push_back(result);
    } else if (is_better(*found->second, result)) {
      ++report.worse;
      report.conflicts.push_back({*found->second, result, true});
    } else {
      ++report.same;
    }
  }
}

/// Adds a card, as last seen and with the earlier of both first-seen times.
void join_card(std::vector<StoredCard>& cards, const StoredCard& card) {
  const auto age = [](const StoredCard& one) {
    return std::pair(one.last_seen_utc, one.card.pci_address);
  };
  const auto known = std::find_if(cards.begin(), cards.end(), [&](const StoredCard& one) {
    return one.card.uuid == card.card.uuid;
  });
  if (known == cards.end()) return cards.push_back(card);
  const auto first_seen = std::min(known->first_seen_utc, card.first_seen_utc);
  if (age(*known) < age(card)) *known = card;
  known->first_seen_utc = first_seen;
}

/// Merges a device of both databases: as last seen, with the earlier of both first-seen times, and
/// with the cards of both.
StoredDevice joined(const StoredDevice& a, const StoredDevice& b) {
  const auto age = [](const StoredDevice& device) {
    return std::pair(device.last_seen_utc, text_of(to_json(device.info)));
  };
  StoredDevice device = age(a) < age(b) ? b : a;
  device.first_seen_utc = std::min(a.first_seen_utc, b.first_seen_utc);
  device.cards = a.cards;
  for (const auto& card : b.cards) join_card(device.cards, card);
  return device;
}

/// Merges the devices. Those that need not change are not written.
void join_devices(const std::vector<StoredDevice>& mine, const std::vector<StoredDevice>& theirs,
                  Merge& merge) {
  std::map<std::string, const StoredDevice*> known;
  for (const auto& device : mine) known.emplace(device.info.fingerprint(), &device);
  for (const auto& device : theirs) {
    const auto found = known.find(device.info.fingerprint());
    if (found == known.end()) {
      merge.write.devices.push_back(device);
      continue;
    }
    auto both = joined(*found->second, device);
    if (text_of(both) != text_of(*found->second)) merge.write.devices.push_back(std::move(both));
  }
}

/// Keeps the entry that comes last in the order if two entries have the same key.
template <typename Entry, typename Key, typename Order>
void join_latest(const std::vector<Entry>& mine, const std::vector<Entry>& theirs, const Key& key,
                 const Order& order, std::vector<Entry>& write) {
  std::map<decltype(key(mine.front())), const Entry*> known;
  for (const auto& entry : mine) known.emplace(key(entry), &entry);
  for (const auto& entry : theirs) {
    const auto found = known.find(key(entry));
    if (found == known.end() || order(*found->second) < order(entry)) write.push_back(entry);
  }
}

/// NaN can't be ordered, so it becomes the smallest value.
double ordered(double value) {
  return std::isnan(value) ? -HUGE_VAL : value;
}

}  // namespace

bool is_certified(const Winner& winner) {
  const double us = winner.measurement.median_us;
  return winner.verdict.passed && winner.rounds > 0 && std::isfinite(us) && us > 0;
}

bool is_better(const StoredWinner& a, const StoredWinner& b) {
  const auto of_a = rank(a), of_b = rank(b);
  return of_a != of_b ? of_a < of_b : content(a) < content(b);
}

Merge merge(const Contents& mine, const Contents& theirs) {
  Merge result;
  join_devices(mine.devices, theirs.devices, result);
  join_results(mine, theirs.results, result);
  using DeviceCeiling = Contents::DeviceCeiling;
  join_latest(
      mine.ceilings, theirs.ceilings,
      [](const DeviceCeiling& entry) {
        return std::tuple(entry.device, entry.ceiling.kind, entry.ceiling.card);
      },
      [](const DeviceCeiling& entry) {
        const Ceiling& ceiling = entry.ceiling;
        return std::tuple(ceiling.measured_utc, ceiling.driver, ordered(ceiling.value),
                          ordered(ceiling.spread_percent));
      },
      result.write.ceilings);
  join_latest(
      mine.peers, theirs.peers,
      [](const Peer& peer) {
        return std::tuple(peer.problem.key(), peer.library, peer.circumstances);
      },
      [](const Peer& peer) {
        return std::tuple(peer.imported_utc, peer.solution, ordered(peer.us));
      },
      result.write.peers);
  join_latest(
      mine.kernels, theirs.kernels, [](const CarriedKernel& kernel) { return kernel.name; },
      [](const CarriedKernel& kernel) {
        return std::tuple(kernel.carried_utc, kernel.description, kernel.files);
      },
      result.write.kernels);
  using DeviceUnsafe = Contents::DeviceUnsafe;
  join_latest(
      mine.unsafe, theirs.unsafe,
      [](const DeviceUnsafe& entry) {
        return std::tuple(entry.device, entry.part.driver, entry.part.check, entry.part.card);
      },
      [](const DeviceUnsafe& entry) {
        return std::tuple(entry.part.recorded_utc, entry.part.status, entry.part.message);
      },
      result.write.unsafe);
  result.report.unsafe = result.write.unsafe.size();
  return result;
}

}  // namespace greta::db
