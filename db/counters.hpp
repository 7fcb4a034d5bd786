#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/model/config.hpp"

namespace greta::db {

/// What one run of a kernel did on the hardware, as its counters tell.
struct Counters {
  std::string source{};  ///< what counted: "CUPTI 13.0, GH100"
  int passes = 0;        ///< number of times that the kernel ran to be counted
  bool cold = true;      ///< the caches were flushed before each pass
  /// Values by the names of tuner/profile/figures.hpp: bytes, numbers, and shares from 0 to 1.
  /// What the GPU does not count is absent, and never 0.
  std::map<std::string, double> figures{};

  /// Returns a figure, or nothing if the GPU does not count it.
  std::optional<double> figure(std::string_view name) const {
    const auto found = figures.find(std::string(name));
    return found == figures.end() ? std::nullopt : std::optional(found->second);
  }
  bool operator==(const Counters&) const = default;
};

/// The counters of a configuration, with what they belong to.
struct StoredCounters {
  std::string device{};   ///< fingerprint
  std::string problem{};  ///< key
  Config config{};
  std::string device_name{}, driver{}, compiler{};
  Counters counters{};
  double us = 0;               ///< time of a run that was not counted; 0: not timed
  std::string card{};          ///< UUID; empty: unknown
  std::string recorded_utc{};  ///< when they were counted
};

}  // namespace greta::db
