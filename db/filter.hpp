#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "db/staleness.hpp"
#include "db/tuned_db.hpp"

namespace greta::db {

/// Selects results of a database. Empty fields match any value.
struct ResultFilter {
  std::string op;
  std::optional<DType> dtype;      ///< element type of the inputs
  std::optional<DType> out_dtype;  ///< element type of the output
  std::string device;              ///< compared with answers_to()
  std::string driver;              ///< part of the driver's text, case-insensitive
  std::string variant;
  std::vector<std::pair<std::string, std::int64_t>> dims;  ///< all of these must match
  std::optional<bool> cold;
  std::optional<bool> stale;

  bool matches(const StoredWinner& result, StalenessJudge& judge) const;
  bool matches(const StoredSession& session, const DeviceInfo& device) const;
  /// `device` is that of the fingerprint; null: unknown. `stale` is not regarded.
  bool matches(const StoredCounters& counters, const DeviceInfo* device) const;

 private:
  bool matches(const Problem& problem) const;
};

/// Whether a word selects a device: its id such as "vulkan:0", its fingerprint, or a part of its
/// name or architecture, case-insensitive. `id` is the id when a result was recorded.
bool answers_to(const DeviceInfo& device, const std::string& id, const std::string& word);

}  // namespace greta::db
