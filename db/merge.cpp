#include "db/merge.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "db/json.hpp"
#include "db/values.hpp"

namespace greta::db {
namespace {

/// The question that a result answers: problem, cold/warm and device.
std::tuple<std::string, bool, std::string> question(const StoredWinner& result) {
  return {result.problem.key(), result.winner.cold, result.device.fingerprint()};
}

auto key_of(const StoredWinner& result) {
  return std::tuple_cat(question(result),
                        std::tuple(result.provenance.driver, result.provenance.compiler,
                                   result.provenance.template_key));
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

double median_of(const StoredWinner& result) {
  const double us = result.winner.measurement.median_us;
  return std::isnan(us) ? HUGE_VAL : us;
}

auto rank(const StoredWinner& result) {
  const auto samples = result.winner.measurement.samples_us.size();
  return std::tuple(!is_certified(result.winner), median_of(result),
                    -static_cast<std::int64_t>(samples), !result.regret.has_value());
}

void join_results(const std::vector<StoredWinner>& mine, const std::vector<StoredWinner>& theirs,
                  Merge& merge) {
  std::map<decltype(key_of(mine.front())), const StoredWinner*> known;
  std::set<decltype(question(mine.front()))> answered;
  for (const auto& result : mine) {
    known.emplace(key_of(result), &result);
    answered.insert(question(result));
  }
  MergeReport& report = merge.report;
  for (const auto& result : theirs) {
    report.uncertified += is_certified(result.winner) ? 0 : 1;
    const auto found = known.find(key_of(result));
    if (found == known.end()) {
      ++report.added;
      report.side_by_side += answered.count(question(result));
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

/// Merges the devices: each as last seen, with the earlier of both first-seen times.
void join_devices(const std::vector<StoredDevice>& mine, const std::vector<StoredDevice>& theirs,
                  Merge& merge) {
  std::map<std::string, const StoredDevice*> known;
  for (const auto& device : mine) known.emplace(device.info.fingerprint(), &device);
  const auto age = [](const StoredDevice& device) {
    return std::pair(device.last_seen_utc, text_of(to_json(device.info)));
  };
  for (const auto& device : theirs) {
    const auto found = known.find(device.info.fingerprint());
    if (found == known.end()) {
      merge.write.devices.push_back(device);
      continue;
    }
    const StoredDevice& own = *found->second;
    const bool newer = age(own) < age(device);
    if (!newer && own.first_seen_utc <= device.first_seen_utc) continue;
    StoredDevice joined = newer ? device : own;
    joined.first_seen_utc = std::min(own.first_seen_utc, device.first_seen_utc);
    merge.write.devices.push_back(std::move(joined));
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
  join_results(mine.results, theirs.results, result);
  using DeviceCeiling = Contents::DeviceCeiling;
  join_latest(
      mine.ceilings, theirs.ceilings,
      [](const DeviceCeiling& entry) { return std::pair(entry.device, entry.ceiling.kind); },
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
  using DeviceUnsafe = Contents::DeviceUnsafe;
  join_latest(
      mine.unsafe, theirs.unsafe,
      [](const DeviceUnsafe& entry) {
        return std::tuple(entry.device, entry.part.driver, entry.part.check);
      },
      [](const DeviceUnsafe& entry) {
        return std::tuple(entry.part.recorded_utc, entry.part.status, entry.part.message);
      },
      result.write.unsafe);
  result.report.unsafe = result.write.unsafe.size();
  return result;
}

}  // namespace greta::db
