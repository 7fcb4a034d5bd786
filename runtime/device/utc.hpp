#pragma once

#include <string>

namespace greta {

/// The time now as it is recorded with results: ISO 8601 in UTC.
std::string utc_now();  ///< "2026-11-20T12:00:00Z"

}  // namespace greta
