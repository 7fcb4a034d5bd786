#pragma once

#include <cstdint>

#include "db/tuned_db.hpp"

namespace greta::db {

/// What a merge took over of another database's history.
struct HistoryMerge {
  std::int64_t sessions = 0;     ///< new ones
  std::int64_t trials = 0;       ///< of new and of known sessions
  std::int64_t comparisons = 0;  ///< of winners of two devices
  std::int64_t counters = 0;     ///< of configurations, new or later than the known ones
};

}  // namespace greta::db
