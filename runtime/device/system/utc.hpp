#pragma once

#include <string>

#include "runtime/device/layers.hpp"

namespace greta::device {

/// Returns the current time in ISO 8601 format in UTC, as recorded with results.
std::string utc_now();  ///< "2026-11-20T12:00:00Z"

}  // namespace greta::device
