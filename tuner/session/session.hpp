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
#include "tuner/session/session_result.hpp"

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
/// The search runs on all members of the pool, everything else on its lead.
SessionResult tune(EvaluatorPool& pool, TunedDb& db, const Problem& problem,
                   const SessionOptions& options, SessionObserver& observer,
                   const std::atomic<bool>& stop);
/// The same on one evaluator.
SessionResult tune(Evaluator& evaluator, TunedDb& db, const Problem& problem,
                   const SessionOptions& options, SessionObserver& observer,
                   const std::atomic<bool>& stop);

}  // namespace greta::tuner
