#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "db/trial.hpp"
#include "db/tuned_db.hpp"
#include "kernels/model/operation.hpp"
#include "runtime/device/device_info.hpp"

namespace greta::tuner {

/// Where the wall time of a session went, in seconds. Of candidates that several cards evaluated
/// at once, the mean of the cards.
struct TimeSpent {
  double wall = 0;
  double compile = 0;
  double verify = 0;
  double measure = 0;  ///< running kernels for their times
  double other() const { return wall - compile - verify - measure; }
};

/// How the search was done: on the problem itself, or on a cheaper stand-in.
struct StandIn {
  Problem problem;
  Work work;
  double estimated_s = 0;  ///< of one launch at full size, which was too long
};

/// A constraint, and the share of combinations that it is the first to reject.
struct Rejection {
  std::string constraint, reason;
  double share = 0;
};

/// Everything a session found out.
struct SessionResult {
  std::int64_t id = 0;  ///< in the database
  Problem problem;
  DeviceInfo device;
  Work work;
  Config default_config;
  std::vector<Ceiling> ceilings;
  std::uint64_t space_count = 0;
  std::uint64_t cartesian_size = 0;
  std::vector<Rejection> rejections;  ///< of the Cartesian product, the most frequent first
  std::optional<StandIn> stand_in;
  std::vector<Trial> trials;
  std::optional<Config> known_winner;  ///< of an earlier session, still valid
  std::optional<Winner> winner;  ///< nothing when the run was interrupted, or nothing was right
  std::optional<Trial> naive;
  bool interrupted = false;
  std::vector<std::string> notes;  ///< what a user should know: drift, timeouts, stand-in
  std::string not_stored;  ///< why the database does not have all of this; empty where it has
  TimeSpent time;
};

/// What rejects most of a space's Cartesian product, estimated from 2000 samples of it.
std::vector<Rejection> most_frequent_rejections(const Space& space);

/// Stores what an evaluator's processes left undone (Evaluator::take_lost()) as trials of the
/// session, and notes it in `result`.
void store_lost(std::vector<Trial> lost, TunedDb& db, SessionResult& result);

/// The trial of this configuration on the given problem, or nullptr.
const Trial* find_trial(const std::vector<Trial>& trials, const Config& config,
                        const std::string& problem_key);

/// The best successful trial of the given problem, or nullptr.
const Trial* best_trial(const std::vector<Trial>& trials, const std::string& problem_key);

}  // namespace greta::tuner
