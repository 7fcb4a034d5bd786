#pragma once

#include <string>
#include <vector>

#include "runtime/device/device_info.hpp"

namespace greta::db {

/// A health check that a card failed with a driver.
struct UnsafePart {
  std::string check;    ///< "fill", "ultrasafe", "default", "f16" or "matrix"
  std::string status;   ///< kind of failure: "correctness", "timeout", "crash", …
  std::string message;  ///< one line
  std::string driver;
  std::string recorded_utc;
  std::string card{};  ///< UUID
};

/// The parts of a device that must not be used because they failed their health checks.
struct Avoided {
  bool device = false;  ///< the whole device
  bool f16 = false;     ///< 16-bit types, and matrix operations on them
  bool matrix = false;  ///< all matrix operations

  bool operator==(const Avoided&) const = default;
};

/// Returns the parts that these failures exclude. A device that fails fill, ultrasafe or default is
/// excluded as a whole.
Avoided avoided(const std::vector<UnsafePart>& parts);

/// Returns the device without the features that must be avoided. Its identity stays the same, so
/// that results are found. Spaces exclude configurations that need those features.
DeviceInfo without(DeviceInfo device, const Avoided& parts);

}  // namespace greta::db
