#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "tuner/session/session.hpp"
#include "tuner/session/session_peaks.hpp"

namespace greta::tuner {

/// What the phases of a session share: its devices, its database, its budget, and its result so
/// far.
struct SessionWork {
  SessionWork(EvaluatorPool& pool, TunedDb& db, const Problem& problem,
              const SessionOptions& options, SessionObserver& observer,
              const std::atomic<bool>& stop);

  /// Whether the session ends early: on a stop, or because the database can't store its results.
  bool stopped() const { return stop || !result.not_stored.empty(); }
  /// Returns the problem that the search runs on: a stand-in, or the problem itself.
  const Problem& search_problem() const {
    return result.stand_in ? result.stand_in->problem : result.problem;
  }
  /// Returns the seconds that the session plans with. A budget of trials is assumed to be a time.
  double planned_s() const;

  /// Continues a session of the run, if there is one, otherwise begins one. Returns false if there
  /// is one and it has finished.
  bool begin(const SessionRecord& about);
  /// Returns the earlier trial of a candidate that must not be tried again, and notes that it was
  /// not; otherwise nullptr.
  const Trial* forbidden(const Config& config, const std::string& problem_key);
  /// Adds the next recorded trial to the result without evaluating it.
  const Trial& replay();
  bool has_recorded(TrialPhase phase) const;

  /// Runs a call that stores something. After a failure, nothing more is stored, and the session
  /// reports the results so far.
  void store(const std::function<void()>& write);
  /// Stores lost work of evaluators; see store_lost().
  void store_lost(std::vector<Trial> lost);
  /// Stores a trial and adds it to the result. `at_once` is the number of trials that ran
  /// concurrently, including this one.
  const Trial& record(Trial trial, double at_once = 1);
  /// Ends what is in flight after a stop or an error. Results that still arrive are stored as lost
  /// work: the strategy is not told, because a session that goes on asks it before it tells them.
  void drain();
  /// Evaluates on the lead, while nothing is in flight, and records the trial. If it is the next
  /// recorded one, replays that instead.
  const Trial& evaluate(const Problem& problem, const Config& config, const TrialLimits& allowed);

  EvaluatorPool& pool;
  TunedDb& db;
  const SessionOptions& options;
  SessionObserver& observer;
  const std::atomic<bool>& stop;
  const Operation& operation;
  Budget budget;
  SessionPeaks peaks;
  SessionResult result;
  TrialPhase phase = TrialPhase::plan;
  std::optional<SearchPlan> plan;  ///< of the search, if it has begun
  /// Trials of the unfinished part that were not replayed yet, in the order of their results.
  std::deque<Trial> recorded;
};

}  // namespace greta::tuner
