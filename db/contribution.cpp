#include "db/contribution.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "db/json.hpp"
#include "db/merge.hpp"
#include "runtime/device/text/printable.hpp"

namespace greta::db {
namespace {

using IsPrivate = std::function<bool(std::string_view)>;

/// Returns the names of the parts of a result's provenance that are missing.
std::vector<std::string> missing_provenance(const StoredWinner& result) {
  const Provenance& from = result.provenance;
  std::vector<std::string> missing;
  for (const auto& [name, text] : {std::pair{"GRETA's version", &from.greta_version},
                                   {"template key", &from.template_key},
                                   {"driver", &from.driver},
                                   {"compiler", &from.compiler},
                                   {"date", &from.started_utc},
                                   {"device's name", &result.device.name},
                                   {"card", &result.winner.card}}) {
    if (text->empty()) missing.emplace_back(name);
  }
  return missing;
}

/// Returns why a failed health check speaks against results of a device; empty if none does.
std::string failed_check(const Contents& all, const StoredWinner& result) {
  const auto fingerprint = result.device.fingerprint();
  for (const auto& [device, part] : all.unsafe) {
    if (device == fingerprint && part.driver == result.provenance.driver) return part.check;
  }
  return {};
}

/// Returns why a result can't be given to others; empty if it can.
std::string refusal(const Contents& all, const StoredWinner& result, StalenessJudge& judge,
                    const IsPrivate& is_private) {
  const Winner& winner = result.winner;
  if (!winner.verdict.passed) return "it is not verified: its last check did not pass";
  if (!is_certified(winner)) return "it is not certified: it was not timed in rounds";
  if (!(winner.speedup_low > 0 && winner.measurement.median_us > 0)) {
    return "it is not certified: it has no interval of its speed-up";
  }
  if (const auto missing = missing_provenance(result); !missing.empty()) {
    return fmt::format("its provenance lacks the {}", fmt::join(missing, ", the "));
  }
  if (const auto stale = judge.reasons(result); !stale.empty()) {
    return fmt::format("it is stale ({}): greta-db requalify renews it", fmt::join(stale, "; "));
  }
  if (const auto check = failed_check(all, result); !check.empty()) {
    return fmt::format("its card failed the health check \"{}\" with this driver", check);
  }
  for (const auto& [name, text] : {std::pair{"driver", &result.provenance.driver},
                                   {"compiler", &result.provenance.compiler},
                                   {"device", &result.device.name},
                                   {"clocks", &winner.measurement.clocks},
                                   {"method of its check", &winner.verdict.method},
                                   {"details of its check", &winner.verdict.detail}}) {
    if (is_private(*text)) return fmt::format("its {} names a person or a machine", name);
  }
  return {};
}

/// Keeps what belongs to these devices, and nothing that tells where a card is.
void keep_devices(Contents& contents, const std::set<std::string>& devices) {
  std::erase_if(contents.devices, [&](const StoredDevice& device) {
    return !devices.contains(device.info.fingerprint());
  });
  std::erase_if(contents.ceilings, [&](const Contents::DeviceCeiling& ceiling) {
    return !devices.contains(ceiling.device);
  });
  for (StoredDevice& device : contents.devices) {
    device.info.card.pci_address.clear();
    for (StoredCard& card : device.cards) card.card.pci_address.clear();
  }
  for (StoredWinner& result : contents.results) result.device.card.pci_address.clear();
}

}  // namespace

Contribution contribution(const Contents& all, StalenessJudge& judge, const IsPrivate& is_private) {
  Contribution given;
  given.contents.devices = all.devices;
  given.contents.ceilings = all.ceilings;
  std::set<std::string> devices;
  std::set<std::tuple<std::string, std::string, bool>> seen;  // the latest comes first
  for (const StoredWinner& result : all.results) {
    const auto fingerprint = result.device.fingerprint();
    if (!seen.emplace(result.problem.key(), fingerprint, result.winner.cold).second) continue;
    if (const auto why = refusal(all, result, judge, is_private); !why.empty()) {
      given.refused.push_back(
          one_line(fmt::format("{} on {}: {}", result.problem.key(), result.device.name, why)));
      continue;
    }
    given.contents.results.push_back(result);
    devices.insert(fingerprint);
  }
  keep_devices(given.contents, devices);
  return given;
}

}  // namespace greta::db
