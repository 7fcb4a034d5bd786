#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "db/tuned_db.hpp"
#include "kernels/model/operation.hpp"
#include "tuner/evaluate/evaluator.hpp"
#include "tuner/search/budget.hpp"

namespace greta::tuner {

struct SessionOptions {
  Budget budget;
  std::string strategy = "local";
  std::uint64_t seed = 0;
  bool cold = true;
  std::vector<Config> try_first;  ///< valid configurations to evaluate before the search's own
  std::vector<Config> suggested;  ///< valid ones, fast elsewhere; tried next, within the budget
  bool compare_naive = false;     ///< also time a kernel with one thread per output
  bool reject_spills = false;     ///< candidates that spill fail; the default is always tried
  std::string command;            ///< stored with the session, for people
  std::string started_utc;
};

/// Where the wall time of a session went, in seconds.
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

/// Receives what happens, as it happens. Both calls have empty defaults.
class SessionObserver {
 public:
  virtual ~SessionObserver() = default;
  virtual void on_phase(const std::string& what);
  /// `result` is as far as it is; the last trial is the new one.
  virtual void on_trial(const SessionResult& result, const Budget& budget);
};

/// What is stored of a session before it begins.
SessionRecord session_record(const Operation& operation, const DeviceInfo& device,
                             const Problem& problem, const SessionOptions& options);

/// Tunes one problem: measures ceilings if they are not known for this driver, searches (on a
/// stand-in where one launch of the problem would take a large part of the budget), confirms the
/// finalists at full size, certifies the winner against the default in interleaved rounds, checks
/// it once more on new inputs, and stores every step in `db` as it happens. `stop` ends the search
/// early: what was measured is kept, and no winner is stored. At the end what was stored is read
/// back. A database that fails ends the search, and the result says so. Throws Error on other
/// trouble that ends the run: the session's outcome is "failed" then, and what the trouble left
/// undone is stored as store_lost() does.
SessionResult tune(Evaluator& evaluator, TunedDb& db, const Problem& problem,
                   const SessionOptions& options, SessionObserver& observer,
                   const std::atomic<bool>& stop);

/// Stores what the evaluator's processes left undone (Evaluator::take_lost()) as trials of the
/// session, and notes it in `result`.
void store_lost(Evaluator& evaluator, TunedDb& db, SessionResult& result);

/// The trial of this configuration on the given problem, or nullptr.
const Trial* find_trial(const std::vector<Trial>& trials, const Config& config,
                        const std::string& problem_key);

/// The best successful trial of the given problem, or nullptr.
const Trial* best_trial(const std::vector<Trial>& trials, const std::string& problem_key);

}  // namespace greta::tuner
