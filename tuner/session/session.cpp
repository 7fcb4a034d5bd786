#include "tuner/session/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/device/system/log.hpp"
#include "runtime/device/version.hpp"
#include "tuner/measure/ceilings.hpp"
#include "tuner/measure/stopwatch.hpp"
#include "tuner/session/finals.hpp"
#include "tuner/session/least_energy.hpp"
#include "tuner/session/search_loop.hpp"
#include "tuner/session/search_plan.hpp"
#include "tuner/session/seeds.hpp"
#include "tuner/session/session_work.hpp"
#include "tuner/session/vendor_rounds.hpp"

namespace greta::tuner {
namespace {

// Fraction of the budget that measuring peaks may take beyond it, except for those that the
// problem's roofline needs.
constexpr double peaks_share = 0.1;

/// Runs the phases of a session, and stores how it ended.
class Session {
 public:
  explicit Session(SessionWork& work) : work_(work), result_(work.result) {}

  SessionResult run();

 private:
  void describe_space();
  void search_and_certify();
  void time_naive();
  void measure_peaks();
  void set_roofline();
  void end_as_failed();
  void conclude();

  SessionWork& work_;
  SessionResult& result_;
  bool known_is_current_ = false;  // the latest known winner's row is of these circumstances
  bool certified_ = false;         // a stop after that loses no winner
  std::size_t replaced_before_ = 0;
};

void Session::describe_space() {
  const Space whole = work_.operation.space(result_.problem, result_.device);
  const Space space = limited(whole, work_.options.limits);
  result_.space_count = space.count();
  result_.cartesian_size = space.cartesian_size();
  result_.rejections = most_frequent_rejections(space);
  find_known_winners(work_.operation, whole, work_.options.cold, work_.db, result_);
  if (const auto damaged = work_.db.damaged_trials(result_.problem.key()); !damaged.empty()) {
    result_.notes.push_back(
        fmt::format("{} damaged trials of this problem were skipped; "
                    "greta-db info lists them",
                    damaged.size()));
  }
  if (work_.options.limits.empty()) return;
  const auto& alternatives = whole.alternatives();
  const bool words = !alternatives.empty() && alternatives.front().words != nullptr;
  result_.notes.push_back("the search was limited to " +
                          (words ? work_.options.limits.text(*alternatives.front().words)
                                 : work_.options.limits.text()));
}

SessionResult Session::run() {
  const Stopwatch watch;
  describe_space();
  replaced_before_ = work_.db.discarded().size();
  const SessionRecord about =
      session_record(work_.operation, result_.device, result_.problem, work_.options);
  known_is_current_ =
      earlier_winner_is_current(result_, work_.options.cold, about.provenance, work_.db);
  if (!work_.begin(about)) {
    auto ended = read_result(std::move(result_), result_.id, work_.options.cold, work_.db);
    if (ended.winner && work_.options.pin) {
      work_.db.pin({about.problem.key(), about.device.fingerprint(), about.cold});
    }
    return ended;
  }
  if (!work_.options.retry_failed) result_.ended_badly = work_.db.ended_badly(result_.id);
  if (!work_.recorded.empty()) {
    result_.notes.push_back(
        fmt::format("resumed: {} trials were already recorded", work_.recorded.size()));
  }
  try {
    search_and_certify();
  } catch (const std::exception& error) {
    work_.drain();
    const auto* const failure = dynamic_cast<const Error*>(&error);
    const bool ended_by_stop =
        failure != nullptr && failure->status() == Status::interrupted && work_.stop;
    if (!ended_by_stop) {
      end_as_failed();
      throw;
    }
  }
  set_roofline();
  work_.store_lost(work_.pool.lead().take_lost());
  result_.interrupted = work_.stop && !certified_;
  if (result_.interrupted) result_.winner.reset();
  conclude();
  result_.time.wall += watch.seconds();
  return std::move(result_);
}

void Session::search_and_certify() {
  plan_search(work_);
  SearchLoop(work_).run();
  work_.phase = TrialPhase::finals;
  while (work_.has_recorded(TrialPhase::finals)) work_.replay();
  if (!work_.stopped()) {
    if (work_.options.compare_naive) time_naive();
    Finals finals(work_.pool.lead(), result_, work_.budget, work_.options, work_.stop);
    finals.run([this](Trial trial) { work_.record(std::move(trial)); },
               [this](const std::string& what) { work_.observer.on_phase(what); });
    if (result_.winner && work_.options.for_energy) find_least_energy(work_, finals.contenders());
    compare_with_vendor(work_);
  }
  // In other circumstances the earlier row would be stale, so this session's is stored beside it.
  result_.keeps_earlier = result_.keeps_earlier && known_is_current_;
  certified_ = !work_.stopped();
  measure_peaks();
}

void Session::time_naive() {
  if (!work_.operation.naive) return;
  work_.observer.on_phase("timing a kernel with one thread per output");
  const Config& naive = *work_.operation.naive;
  auto allowed = limits_of(work_);
  allowed.best_us = 0;
  allowed.run_s = 120;
  const Trial* known = find_trial(result_.trials, naive, work_.search_problem().key());
  const bool measured = known != nullptr && !known->measurement.raced;
  result_.naive = measured ? *known : work_.evaluate(work_.search_problem(), naive, allowed);
}

// The first result must not wait for peaks, so they are measured last: those that this problem's
// roofline needs, then others while the budget lasts, or for a fixed share of it. Later sessions
// measure what is missing then.
void Session::measure_peaks() {
  if (work_.options.provisional) return;
  const double left_s = work_.budget.remaining_s();
  const double allowed_s =
      std::max(std::isinf(left_s) ? 0 : left_s, peaks_share * work_.planned_s());
  const Lap lap(result_.time.peaks);
  try {
    work_.peaks.measure(
        work_.pool.lead(), allowed_s, [this] { return work_.stopped(); },
        [this](const std::string& what) { work_.observer.on_phase(what); },
        [this](const std::vector<Ceiling>& measured) {
          work_.store([&] { work_.db.set_ceilings(result_.device, measured); });
        });
    result_.ceilings = work_.peaks.of_the_problem();
  } catch (const Error& error) {
    if (error.status() == Status::interrupted) throw;
    result_.notes.push_back(std::string("no peaks, so no share of the roofline: ") + error.what());
  }
}

void Session::set_roofline() {
  if (result_.winner) {
    result_.winner->roofline = roofline_us(result_.problem.dtype, result_.work, result_.ceilings) /
                               result_.winner->measurement.median_us;
  }
}

// The error that ends the run describes what happened. The database records which candidate was
// running.
void Session::end_as_failed() {
  work_.store_lost(work_.pool.lead().take_lost());
  work_.store([&] { work_.db.end_session(result_.id, "failed"); });
  if (!result_.not_stored.empty()) log(LogLevel::warning, "{}", result_.not_stored);
}

void Session::conclude() {
  const char* const outcome = result_.interrupted ? "interrupted"
                              : result_.winner    ? "done"
                                                  : "no winner";
  work_.store([&] {
    TunedDb& db = work_.db;
    const Question question{result_.problem.key(), result_.device.fingerprint(),
                            work_.options.cold};
    if (result_.winner && !result_.keeps_earlier && !db.set_winner(result_.id, *result_.winner)) {
      result_.pinned = db.pinned(question);
    }
    if (result_.winner && work_.options.pin) db.pin(question);
    if (!result_.interrupted) db.set_finalists(result_.id, result_.finalists);
    if (result_.energy_winner) db.set_energy_winner(result_.id, *result_.energy_winner);
    db.end_session(result_.id, outcome);
    const auto replaced = db.discarded();
    for (std::size_t i = replaced_before_; i < replaced.size(); ++i) {
      result_.notes.push_back("replaced " + replaced[i].text());
    }
    db.confirm();
  });
}

}  // namespace

void SessionObserver::on_phase(const std::string& /*what*/) {}

void SessionObserver::on_trial(const SessionResult& /*result*/, const Budget& /*budget*/) {}

SessionRecord session_record(const Operation& operation, const DeviceInfo& device,
                             const Problem& problem, const SessionOptions& options) {
  SessionRecord about;
  about.device = device;
  about.problem = problem;
  about.provenance = {std::string(version()), operation.key(), device.driver, device.compiler,
                      options.started_utc};
  about.strategy = options.strategy;
  about.budget = options.budget.text();
  about.seed = options.seed;
  about.cold = options.cold;
  about.command = options.command;
  about.run = options.run;
  about.for_energy = options.for_energy;
  return about;
}

SessionResult tune(EvaluatorPool& pool, TunedDb& db, const Problem& problem,
                   const SessionOptions& options, SessionObserver& observer,
                   const std::atomic<bool>& stop) {
  SessionWork work(pool, db, problem, options, observer, stop);
  return Session(work).run();
}

SessionResult tune(Evaluator& evaluator, TunedDb& db, const Problem& problem,
                   const SessionOptions& options, SessionObserver& observer,
                   const std::atomic<bool>& stop) {
  EvaluatorPool pool({&evaluator});
  return tune(pool, db, problem, options, observer, stop);
}

}  // namespace greta::tuner
