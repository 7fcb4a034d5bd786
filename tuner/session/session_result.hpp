#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "db/finalist.hpp"
#include "db/trial.hpp"
#include "db/tuned_db.hpp"
#include "kernels/model/operation.hpp"
#include "runtime/device/device_info.hpp"
#include "tuner/measure/statistics.hpp"

namespace greta::tuner {

/// Wall time of a session by activity, in seconds. For candidates that several cards evaluated
/// concurrently, it is the mean over the cards.
struct TimeSpent {
  double wall = 0;
  double compile = 0;
  double verify = 0;
  double measure = 0;  ///< running kernels to time them
  double waiting = 0;  ///< until the next candidate is compiled
  double peaks = 0;    ///< measuring the device's peaks
  double other() const { return wall - compile - verify - measure - waiting - peaks; }

  // Of the search alone, whose strategy and database mostly work while candidates run.
  double search = 0;    ///< from its first question to its last result
  double strategy = 0;  ///< asking and telling the strategy
  double record = 0;    ///< storing trials
};

/// The smaller problem that was searched instead.
struct StandIn {
  Problem problem;
  Work work;
  double estimated_s = 0;  ///< time of one launch at full size, which was too long
};

/// A constraint and the share of combinations for which it is the first violated one.
struct Rejection {
  std::string constraint, reason;
  double share = 0;
};

/// The vendor's library beside the winner.
struct VendorResult {
  std::string library;  ///< name and version: "cuBLASLt 13.1.0"
  Config config;        ///< its fastest configuration
  double us = 0;        ///< its median in rounds with the winner
  Interval ratio;       ///< its time divided by the winner's
  double confidence = 0.95;
  int rounds = 0;
  bool stored = false;  ///< whether it is stored as a winner (SessionOptions::allow_vendor)
};

/// The result of a session.
struct SessionResult {
  std::int64_t id = 0;  ///< id in the database
  Problem problem;
  DeviceInfo device;
  Work work;
  Config default_config;
  std::vector<Ceiling> ceilings;
  std::uint64_t space_count = 0;
  std::uint64_t cartesian_size = 0;
  std::vector<Rejection> rejections;  ///< shares of the Cartesian product, most frequent first
  std::optional<StandIn> stand_in;
  std::vector<Trial> trials;
  /// Winners of earlier sessions, in any circumstances, that are still valid; the latest first.
  std::vector<Config> known_winners;
  bool earlier_has_ratio = true;  ///< whether the first of them was compared with the default
  std::optional<Winner> winner;   ///< empty if the run was interrupted or no candidate was correct
  /// Whether `winner` is that of an earlier session in the same circumstances, because nothing is
  /// proved to be better. The database keeps its row with its certificate.
  bool keeps_earlier = false;
  std::vector<Finalist> finalists;  ///< those that stayed to the end first
  std::optional<Trial> naive;
  bool interrupted = false;
  std::size_t resumed = 0;       ///< number of trials that an earlier, unfinished part recorded
  bool finished_before = false;  ///< the run's earlier part finished it, and nothing was done now
  /// Trials of earlier sessions that hung or crashed in the same circumstances. Their candidates
  /// are not tried again.
  std::vector<Trial> ended_badly;
  std::set<Config> not_tried;  ///< those that the session would have tried
  std::optional<EnergyWinner> energy_winner;
  /// Nothing where no library computes the operation.
  std::optional<VendorResult> vendor;
  /// The configuration that the problem's answer is pinned to, if it is.
  std::optional<Config> pinned;
  std::vector<std::string> notes;  ///< remarks for the user: drift, timeouts, stand-in
  std::string not_stored;          ///< why the database lacks part of this; empty if it is complete
  TimeSpent time;
};

/// Estimates which constraints reject most of a space's Cartesian product, from 2000 samples of it.
std::vector<Rejection> most_frequent_rejections(const Space& space);

/// Stores the work that an evaluator's processes lost (Evaluator::take_lost()) as trials of the
/// session, and adds notes to `result`.
void store_lost(std::vector<Trial> lost, TunedDb& db, SessionResult& result);

/// Returns the result of a session that has ended, from the database.
/// `about` has the problem, the device, and the space.
SessionResult read_result(SessionResult about, std::int64_t session, bool cold, const TunedDb& db);

/// Returns the latest trial of this configuration on the given problem, or nullptr.
const Trial* find_trial(const std::vector<Trial>& trials, const Config& config,
                        const std::string& problem_key);

/// Returns whether a trial ended because its process was killed from outside (SIGKILL), which says
/// nothing about its configuration.
bool was_killed(const Trial& trial);

/// Returns the fastest successful trial of the given problem, or nullptr.
const Trial* best_trial(const std::vector<Trial>& trials, const std::string& problem_key);

}  // namespace greta::tuner
