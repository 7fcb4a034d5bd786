#pragma once

#include <string>

#include "runtime/device/layers.hpp"

namespace greta::device {

/// The time now as it is recorded with results: ISO 8601 in UTC.
std::string utc_now();  ///< "2026-11-20T12:00:00Z"

}  // namespace greta::device
