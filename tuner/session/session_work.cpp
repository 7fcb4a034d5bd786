#include "tuner/session/session_work.hpp"

#include <fmt/format.h>

#include <utility>

#include "tuner/measure/stopwatch.hpp"

namespace greta::tuner {
namespace {

constexpr double budget_without_time_s = 120;  // assumed for planning with a budget of trials

/// Adds a note if the default is none of the operation's defaults, because constraints reject all.
void note_default(const Operation& operation, SessionResult& result) {
  std::string rejected;
  if (Instance(operation, result.problem, result.device).untuned(rejected)) return;
  result.notes.push_back(
      fmt::format("constraints reject all defaults of {} here, the first one by {}; the default is "
                  "a valid configuration that GRETA chose",
                  operation.name, rejected));
}

}  // namespace

SessionWork::SessionWork(EvaluatorPool& pool, TunedDb& db, const Problem& problem,
                         const SessionOptions& options, SessionObserver& observer,
                         const std::atomic<bool>& stop)
    : pool(pool),
      db(db),
      options(options),
      observer(observer),
      stop(stop),
      operation(pool.catalog().at(problem.op)),
      budget(options.budget) {
  result.problem = problem;
  result.device = pool.device();
  result.work = operation.work(problem);
  result.default_config = operation.default_config(problem, result.device);
  note_default(operation, result);
  peaks = SessionPeaks(db, result.device, problem.dtype, result.work);
  result.ceilings = peaks.of_the_problem();
}

double SessionWork::planned_s() const {
  return budget.kind() == Budget::Kind::seconds ? budget.amount() : budget_without_time_s;
}

void SessionWork::store(const std::function<void()>& write) {
  if (!result.not_stored.empty()) return;
  try {
    write();
  } catch (const Error& error) {
    result.not_stored = error.what();
  }
}

void SessionWork::store_lost(std::vector<Trial> lost) {
  store([&] { tuner::store_lost(std::move(lost), db, result); });
}

bool SessionWork::begin(const SessionRecord& about) {
  budget.start(result.space_count);
  const auto found = about.run == 0
                         ? std::nullopt
                         : db.find_session(about.run, {about.problem.key(),
                                                       about.device.fingerprint(), about.cold});
  if (!found) {
    result.id = db.begin_session(about);
    return true;
  }
  result.id = found->id;
  if (found->outcome == "done" || found->outcome == "no winner") return false;
  plan = found->plan;
  for (Trial& trial : db.trials(found->id)) {
    if (trial.phase && trial.phase != TrialPhase::lost) recorded.push_back(std::move(trial));
  }
  if (!recorded.empty()) {
    budget.add_spent(recorded.back().elapsed_s);
    result.time.wall = recorded.back().elapsed_s;
  }
  db.reopen_session(found->id);
  return true;
}

const Trial* SessionWork::forbidden(const Config& config, const std::string& problem_key) {
  const Trial* earlier = find_trial(result.ended_badly, config, problem_key);
  if (earlier != nullptr) result.not_tried.insert(config);
  return earlier;
}

bool SessionWork::has_recorded(TrialPhase wanted) const {
  return !recorded.empty() && recorded.front().phase == wanted;
}

const Trial& SessionWork::replay() {
  Trial trial = std::move(recorded.front());
  recorded.pop_front();
  result.time.compile += trial.compile_s;
  result.time.verify += trial.verify_s;
  result.time.measure += trial.measure_s;
  result.trials.push_back(std::move(trial));
  ++result.resumed;
  budget.count_trial();
  return result.trials.back();
}

const Trial& SessionWork::record(Trial trial, double at_once) {
  result.time.compile += trial.compile_s / at_once;
  result.time.verify += trial.verify_s / at_once;
  result.time.measure += trial.measure_s / at_once;
  trial.phase = phase;
  trial.elapsed_s = budget.elapsed_s();
  {
    const Lap lap(result.time.record);
    store([&] { db.add_trial(result.id, trial); });
  }
  result.trials.push_back(std::move(trial));
  budget.count_trial();
  observer.on_trial(result, budget);
  return result.trials.back();
}

void SessionWork::drain() {
  pool.cancel();
  while (pool.in_flight() > 0) {
    try {
      Evaluated late = pool.next();
      store_lost(std::move(late.lost));
      late.trial.phase = TrialPhase::lost;
      if (late.trial.failure != Status::interrupted)
        store([&] { db.add_trial(result.id, late.trial); });
    } catch (const Error&) {  // the first error is what ends the run
    }
  }
}

const Trial& SessionWork::evaluate(const Problem& problem, const Config& config,
                                   const TrialLimits& allowed) {
  if (has_recorded(phase) && recorded.front().config == config &&
      recorded.front().problem_key == problem.key()) {
    return replay();
  }
  if (const Trial* earlier = forbidden(config, problem.key())) return *earlier;
  Evaluator& lead = pool.lead();
  Trial trial = lead.evaluate(problem, config, allowed);
  store_lost(lead.take_lost());
  return record(std::move(trial));
}

}  // namespace greta::tuner
