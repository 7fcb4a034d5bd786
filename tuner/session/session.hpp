#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "db/tuned_db.hpp"
#include "kernels/model/operation.hpp"
#include "tuner/evaluate/evaluator_pool.hpp"
#include "tuner/search/budget.hpp"
#include "tuner/search/limits.hpp"
#include "tuner/session/session_result.hpp"

namespace greta::tuner {

struct SessionOptions {
  Budget budget;
  std::string strategy = "auto";  ///< for create_strategy()
  std::uint64_t seed = 0;
  bool cold = true;
  SearchLimits limits;  ///< of the search
  /// Most rounds in which finalists and default are timed, at least 3; four times as many while a
  /// finalist is significantly faster, but its interval is wider than the gain.
  int rounds = 60;
  std::vector<Config> try_first;  ///< valid configurations to evaluate before the search
  /// What look-ups answer for the problem before this session, if it is valid. It is tried
  /// regardless of the budget, as the session's winner takes its place.
  std::optional<Config> answered;
  std::vector<Config> suggested;  ///< valid ones that are fast elsewhere; next, within the budget
  bool compare_naive = false;     ///< also time a kernel with one thread per output
  bool reject_spills = false;     ///< candidates that spill fail; the default is always tried
  std::string command;            ///< stored with the session, for readers only
  /// Run that the session belongs to. A session of the run for the problem that did not finish goes
  /// on, and one that finished is not repeated. 0: none.
  std::int64_t run = 0;
  bool retry_failed = false;  ///< also try candidates that hung or crashed in earlier sessions
  bool for_energy = false;    ///< also find the finalist of which a launch takes the least energy
  bool pin = false;           ///< pin the answer (TunedDb::pin())
  /// Store a configuration of the vendor's library that is significantly faster than the winner as
  /// a winner of its own, which look-ups use where that is allowed.
  bool allow_vendor = false;
  /// The caller times winners again where they are used: the finals are short, in this process
  /// alone, and peaks are not measured.
  bool provisional = false;
  std::string started_utc;
};

/// Receives events as they happen. The default implementations do nothing.
class SessionObserver {
 public:
  virtual ~SessionObserver() = default;
  virtual void on_phase(const std::string& what);
  /// Called after each trial, which is the last one in `result`. `result` is incomplete.
  virtual void on_trial(const SessionResult& result, const Budget& budget);
};

/// Returns the record of a session that is stored before it begins.
SessionRecord session_record(const Operation& operation, const DeviceInfo& device,
                             const Problem& problem, const SessionOptions& options);

/// Tunes one problem. Searches (on a stand-in if one launch of the problem would take a large part
/// of the budget), confirms the finalists at full size, certifies the winner against the default in
/// interleaved rounds, and verifies it again on new inputs. Then measures the device's peaks that
/// the database lacks for this driver, in what is left of the budget. Every step is stored in `db`
/// as it happens, and the stored data is read back at the end. `stop` ends the run early:
/// measurements are kept, and no winner is stored. A session that goes on does not repeat the
/// trials that are recorded: the strategy is asked and told as before, so that the search ends as
/// if it had not been interrupted. If the database fails, the search ends and the result says so.
/// Other errors that end the run throw Error; the session's outcome is then "failed", and lost work
/// is stored as in store_lost(). The search runs on all members of the pool, everything else on its
/// lead.
SessionResult tune(EvaluatorPool& pool, TunedDb& db, const Problem& problem,
                   const SessionOptions& options, SessionObserver& observer,
                   const std::atomic<bool>& stop);
/// Tunes on a single evaluator.
SessionResult tune(Evaluator& evaluator, TunedDb& db, const Problem& problem,
                   const SessionOptions& options, SessionObserver& observer,
                   const std::atomic<bool>& stop);

}  // namespace greta::tuner
