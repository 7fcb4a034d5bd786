#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "db/lookup/lookup_files.hpp"
#include "kernels/model/config.hpp"

namespace greta::db {

/// How an answer was found, in the order in which a look-up tries.
enum class LookupOrigin {
  exact,              ///< certified for this problem on this device
  nearest_shape,      ///< certified for the nearest other shape on this device
  same_architecture,  ///< certified on another device of this architecture for this shape or the
                      ///< nearest
  predicted,          ///< the static prior's (predicted_config()): no recorded winner is usable
  fallback,           ///< likewise, the operation's default
  forced              ///< a rule decided, and nothing was looked up (UseRule)
};

inline constexpr std::size_t lookup_origins = 6;
/// Returns "exact", "nearest shape", "same architecture", "static prior", "default" or "forced".
std::string_view to_string(LookupOrigin origin);

/// The speed-up of a winner over the operation's default, timed in the same rounds.
struct Speedup {
  double ratio = 1;          ///< the default's time divided by the winner's
  double low = 1, high = 1;  ///< confidence interval of the ratio
};

/// The time of a winner where it was certified, in microseconds, with its confidence interval.
struct CertifiedTime {
  double us = 0, low = 0, high = 0;
};

/// The configuration to run for a problem, and its origin.
struct Answer {
  Config config;  ///< valid for the requested problem on the requesting device
  LookupOrigin origin = LookupOrigin::fallback;
  /// The expected time divided by the time of the best known configuration; 1 if it is that one. It
  /// is the mean over this operation's recorded problems for answers of the same origin. Nothing if
  /// none is recorded.
  std::optional<double> expected_regret;
  /// The speed-up for the problem and device that the configuration was certified for; nothing for
  /// a default.
  std::optional<Speedup> speedup;
  std::optional<CertifiedTime> time{};  ///< likewise
  std::string problem;  ///< key of the certified problem; empty for a prediction and a default
  std::string device;   ///< name of the certifying device; empty for a default
  std::optional<DatabaseLevel> level{};  ///< of the database that it comes from
  std::filesystem::path database{};      ///< that database; empty for a default
  /// The changes by which a configuration of an older template was carried over (ConfigMigration):
  /// "TN=1 added"; empty: it was stored in this form.
  std::vector<std::string> migrated{};
  std::string rule{};  ///< text of the rule that decided; empty: none did

  /// Returns the origin, the database unless it is the user's, and whether the configuration was
  /// carried over: "exact, shipped, migrated".
  std::string origin_text() const;
};

}  // namespace greta::db
