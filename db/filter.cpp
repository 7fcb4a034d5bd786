#include "db/filter.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace greta::db {
namespace {

bool contains(std::string_view text, std::string_view part) {
  const auto same = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

}  // namespace

bool answers_to(const DeviceInfo& device, const std::string& id, const std::string& word) {
  return word == id || word == to_string(device.backend) || word == device.fingerprint() ||
         contains(device.name, word) || contains(device.architecture, word);
}

bool ResultFilter::matches(const Problem& problem) const {
  return (op.empty() || problem.op == op) && (!dtype || problem.dtype == *dtype) &&
         (!out_dtype || problem.out_dtype == *out_dtype) &&
         std::all_of(dims.begin(), dims.end(), [&](const auto& wanted) {
           return std::find(problem.dims.begin(), problem.dims.end(), wanted) != problem.dims.end();
         });
}

bool ResultFilter::matches(const StoredWinner& result, StalenessJudge& judge) const {
  return matches(result.problem) && (!cold || result.winner.cold == *cold) &&
         (variant.empty() || result.winner.config.variant == variant) &&
         (device.empty() || answers_to(result.device, result.device_id, device)) &&
         (driver.empty() || contains(result.provenance.driver, driver)) &&
         (!stale || judge.reasons(result).empty() != *stale);
}

bool ResultFilter::matches(const StoredSession& session, const DeviceInfo& on) const {
  return matches(session.problem) && (!cold || session.cold == *cold) &&
         (device.empty() || answers_to(on, session.device_id, device)) &&
         (driver.empty() || contains(session.provenance.driver, driver));
}

bool ResultFilter::matches(const StoredCounters& stored, const DeviceInfo* on) const {
  const auto counted = Problem::parse(stored.problem);
  return counted && matches(*counted) && (!cold || stored.counters.cold == *cold) &&
         (variant.empty() || stored.config.variant == variant) &&
         (device.empty() || device == stored.device || contains(stored.device_name, device) ||
          (on != nullptr && answers_to(*on, on->id(), device))) &&
         (driver.empty() || contains(stored.driver, driver));
}

}  // namespace greta::db
