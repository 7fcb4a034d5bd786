#pragma once

#include "db/filter.hpp"
#include "db/tuned_db.hpp"

namespace greta::tuner::cli {

/// Prints the counters of a database that match the filter, as text or JSON, and returns the
/// exit code.
int list_counters(const TunedDb& db, const ResultFilter& filter, bool as_json);

}  // namespace greta::tuner::cli
