#pragma once

#include <compare>
#include <string>

#include "runtime/device/layers.hpp"

namespace greta::db {

/// What a look-up asks: the fastest configuration for a problem, on a device model, with cold or
/// warm caches.
struct Question {
  std::string problem_key;
  std::string device_fingerprint;
  bool cold = true;

  auto operator<=>(const Question&) const = default;
};

/// A question whose answer never changes.
struct Pin {
  Question question;
  std::string pinned_utc;
};

}  // namespace greta::db
