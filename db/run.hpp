#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/model/config.hpp"
#include "runtime/device/layers.hpp"

namespace greta::db {

/// The request of a run: one command that tunes one or several problems.
struct RunRecord {
  std::string request;  ///< hash of everything that the trials depend on, except for the seed
  std::uint64_t seed = 0;
  std::string command;      ///< for readers only
  std::string started_utc;  ///< ISO 8601
};

/// A run that did not finish.
struct UnfinishedRun {
  std::int64_t id = 0;
  std::uint64_t seed = 0;
  std::string started_utc;
};

/// The input of a session's search, which is stored before the search begins.
struct SearchPlan {
  std::vector<Config> first;     ///< configurations that the strategy tries first
  std::string stand_in;          ///< key of the problem that is searched instead; empty: none
  double stand_in_launch_s = 0;  ///< estimated time of a launch of the full problem
};

/// A session of a run.
struct RunSession {
  std::int64_t id = 0;
  std::optional<std::string> outcome;
  std::optional<SearchPlan> plan;  ///< nothing if the search had not begun
};

}  // namespace greta::db
