#pragma once

#include <string>
#include <vector>

#include "runtime/device/device_info.hpp"

namespace greta::db {

/// A health check that a device failed with a driver.
struct UnsafePart {
  std::string check;    ///< "fill", "ultrasafe", "default", "f16" or "matrix"
  std::string status;   ///< how it failed: "correctness", "timeout", "crash", …
  std::string message;  ///< one line
  std::string driver;
  std::string recorded_utc;
};

/// Parts of a device that must not be used, because they failed their health checks.
struct Avoided {
  bool device = false;  ///< all of it
  bool f16 = false;     ///< types of 16 bits, and matrix operations on them
  bool matrix = false;  ///< matrix operations

  bool operator==(const Avoided&) const = default;
};

/// What these failures forbid: a device that fails fill, ultrasafe or default is not to be used.
Avoided avoided(const std::vector<UnsafePart>& parts);

/// The device as it may be used: without the features that are avoided. Its identity stays, so
/// that results are found; spaces leave out what needs those features.
DeviceInfo without(DeviceInfo device, const Avoided& parts);

}  // namespace greta::db
