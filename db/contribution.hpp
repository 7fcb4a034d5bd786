#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "db/staleness.hpp"
#include "db/tuned_db.hpp"

namespace greta::db {

/// A part of a database that somebody gives to GRETA, and what is not part of it.
struct Contribution {
  Contents contents;
  std::vector<std::string> refused;  ///< a line for each result that is left out, with the reason
};

/// Returns what of `all` can be given to others: the latest result of each problem, device, and
/// cold or warm caches, if it is certified, verified and of today's templates, and if its
/// provenance is complete. Devices that failed a health check with their driver, and results and
/// devices with a text for which `is_private` is true, are left out. Sessions, trials, raw samples,
/// figures of kernels, times of other libraries and PCI addresses are never part of it.
Contribution contribution(const Contents& all, StalenessJudge& judge,
                          const std::function<bool(std::string_view)>& is_private);

}  // namespace greta::db
