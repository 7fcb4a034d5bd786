#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "db/staleness.hpp"
#include "db/tuned_db.hpp"

namespace greta::db {

/// Which results of a database are meant. Empty fields mean any.
struct ResultFilter {
  std::string op;
  std::optional<DType> dtype;      ///< of the inputs
  std::optional<DType> out_dtype;  ///< of the output
  std::string device;              ///< as in answers_to()
  std::string driver;              ///< a part of it, in any case
  std::string variant;
  std::vector<std::pair<std::string, std::int64_t>> dims;  ///< all of these
  std::optional<bool> cold;
  std::optional<bool> stale;

  bool matches(const StoredWinner& result, StalenessJudge& judge) const;
  bool matches(const StoredSession& session, const DeviceInfo& device) const;

 private:
  bool matches(const Problem& problem) const;
};

/// Whether a device is meant by a word: its id as "vulkan:0", or a part of its name or
/// architecture in any case. `id`: what it was called when a result was recorded.
bool answers_to(const DeviceInfo& device, const std::string& id, const std::string& word);

}  // namespace greta::db
