#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kernels/model/config.hpp"

namespace greta::db {

/// How an answer was found, in the order in which a look-up tries.
enum class LookupOrigin {
  exact,              ///< certified for this problem on this device
  nearest_shape,      ///< certified for the nearest other shape on this device
  same_architecture,  ///< certified on another device of this architecture: this shape or the
                      ///< nearest
  fallback            ///< the operation's default: nothing recorded serves
};

/// "exact", "nearest shape", "same architecture" or "default".
std::string_view to_string(LookupOrigin origin);

/// How much faster a winner is than the operation's default, timed in the same rounds.
struct Speedup {
  double ratio = 1;          ///< the default's time over the winner's
  double low = 1, high = 1;  ///< its confidence interval
};

/// What to run for a problem, and why.
struct Answer {
  Config config;  ///< valid for the problem that was asked for, on the device that asks
  LookupOrigin origin = LookupOrigin::fallback;
  /// The time to expect over that of the best configuration known, 1 where it is that one: what
  /// answers of this kind cost for problems of this operation that are recorded. Nothing where
  /// nothing tells.
  std::optional<double> expected_regret;
  /// Of the configuration for the problem and device that it was certified for; nothing for a
  /// default.
  std::optional<Speedup> speedup;
  std::string problem;   ///< key of the problem that it was certified for; empty for a default
  std::string device;    ///< name of the device that it was certified on; empty for a default
  bool shipped = false;  ///< it came from the database that ships, not from the user's own
};

}  // namespace greta::db
