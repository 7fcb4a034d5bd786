#include "tuner/session/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "runtime/device/system/log.hpp"
#include "runtime/device/version.hpp"
#include "tuner/measure/ceilings.hpp"
#include "tuner/measure/stopwatch.hpp"
#include "tuner/search/strategy.hpp"
#include "tuner/session/finals.hpp"
#include "tuner/session/seeds.hpp"
#include "tuner/session/session_peaks.hpp"

namespace greta::tuner {
namespace {

// Fraction of the roofline that an untuned kernel is assumed to reach. Only used for planning.
constexpr double assumed_efficiency_cpu = 0.2;
constexpr double assumed_efficiency_gpu = 0.3;
// If a launch takes a larger fraction of the budget than this, the search runs on a stand-in.
constexpr double longest_launch = 1.0 / 200;
// Fraction of the budget that a launch of the stand-in takes.
constexpr double stand_in_launch = 1.0 / 1000;
constexpr double budget_without_time_s = 120;  // assumed for planning with a budget of trials
// Fraction of the budget that measuring peaks may take beyond it, except for those that the
// problem's roofline needs.
constexpr double peaks_share = 0.1;

class Session {
 public:
  Session(EvaluatorPool& pool, TunedDb& db, const Problem& problem, const SessionOptions& options,
          SessionObserver& observer, const std::atomic<bool>& stop)
      : pool_(pool),
        db_(db),
        options_(options),
        observer_(observer),
        stop_(stop),
        operation_(pool.catalog().at(problem.op)),
        budget_(options.budget) {
    result_.problem = problem;
    result_.device = pool.device();
    result_.work = operation_.work(problem);
    result_.default_config = operation_.default_config(problem, result_.device);
  }

  SessionResult run();

 private:
  void search_and_certify();
  /// Waits for what is in flight and stores it, so that other sessions can use the pool.
  void drain();
  void end_as_failed();
  void measure_peaks();
  void set_roofline();
  void plan_search();
  double planned_s() const;
  bool choose_stand_in(double full_s);
  double scale() const;
  void search();
  void time_naive();
  TrialLimits limits() const;
  bool time_for_finals();
  void store(const std::function<void()>& write);
  void conclude();
  bool stopped() const { return stop_ || !result_.not_stored.empty(); }
  void ask(Strategy& strategy, const Space& space, std::uint64_t most);
  void tell(Strategy& strategy, const Space& space, Evaluated evaluated);
  TrialLimits limits_of(const Config& config) const;
  /// Evaluates on the lead, while nothing is in flight.
  const Trial& evaluate(const Problem& problem, const Config& config, const TrialLimits& allowed);
  /// `at_once` is the number of trials that ran concurrently, including this one.
  const Trial& record(Trial trial, double at_once = 1);
  double full_launch_s() const;
  const Problem& search_problem() const {
    return result_.stand_in ? result_.stand_in->problem : result_.problem;
  }

  EvaluatorPool& pool_;
  TunedDb& db_;
  const SessionOptions& options_;
  SessionObserver& observer_;
  const std::atomic<bool>& stop_;
  const Operation& operation_;
  Budget budget_;
  bool warned_ = false;
  bool known_is_current_ = false;  // the latest known winner's row is of these circumstances
  bool certified_ = false;         // a stop after that loses no winner
  SessionPeaks peaks_;
  std::size_t replaced_before_ = 0;
  SessionResult result_;
};

SessionResult Session::run() {
  const Stopwatch watch;
  const Space whole = operation_.space(result_.problem, result_.device);
  const Space space = limited(whole, options_.limits);
  result_.space_count = space.count();
  result_.cartesian_size = space.cartesian_size();
  result_.rejections = most_frequent_rejections(space);
  result_.known_winners = known_winners(whole, result_, options_.cold, db_);

  if (!options_.limits.empty())
    result_.notes.push_back("the search was limited to " + options_.limits.text());
  replaced_before_ = db_.discarded().size();
  const SessionRecord about = session_record(operation_, result_.device, result_.problem, options_);
  known_is_current_ = earlier_winner_is_current(result_, options_.cold, about.provenance, db_);
  result_.id = db_.begin_session(about);
  try {
    search_and_certify();
  } catch (const std::exception& error) {
    drain();
    const auto* const failure = dynamic_cast<const Error*>(&error);
    const bool ended_by_stop =
        failure != nullptr && failure->status() == Status::interrupted && stop_;
    if (!ended_by_stop) {
      end_as_failed();
      throw;
    }
  }
  set_roofline();
  store([&] { store_lost(pool_.lead().take_lost(), db_, result_); });
  result_.interrupted = stop_ && !certified_;
  if (result_.interrupted) result_.winner.reset();
  conclude();
  result_.time.wall = watch.seconds();
  return std::move(result_);
}

void Session::search_and_certify() {
  peaks_ = SessionPeaks(db_, result_.device, result_.problem.dtype);
  result_.ceilings = peaks_.of_the_problem();
  budget_.start(result_.space_count);
  plan_search();
  search();
  if (!stopped()) {
    if (options_.compare_naive) time_naive();
    Finals finals(pool_.lead(), result_, budget_, options_, stop_);
    finals.run([this](Trial trial) { record(std::move(trial)); },
               [this](const std::string& what) { observer_.on_phase(what); });
  }
  // In other circumstances the earlier row would be stale, so this session's is stored beside it.
  result_.keeps_earlier = result_.keeps_earlier && known_is_current_;
  certified_ = !stopped();
  measure_peaks();
}

void Session::set_roofline() {
  if (result_.winner) {
    result_.winner->roofline = roofline_us(result_.problem.dtype, result_.work, result_.ceilings) /
                               result_.winner->measurement.median_us;
  }
}

void Session::drain() {
  pool_.cancel();
  try {
    while (pool_.in_flight() > 0) {
      Evaluated late = pool_.next();
      store([&] {
        store_lost(std::move(late.lost), db_, result_);
        if (late.trial.failure != Status::interrupted) db_.add_trial(result_.id, late.trial);
      });
    }
  } catch (const Error&) {  // all members have retired
  }
}

// The error that ends the run describes what happened. The database records which candidate was
// running.
void Session::end_as_failed() {
  store([&] { store_lost(pool_.lead().take_lost(), db_, result_); });
  store([&] { db_.end_session(result_.id, "failed"); });
  if (!result_.not_stored.empty()) log(LogLevel::warning, "{}", result_.not_stored);
}

// Runs a call that stores something. If it fails, the session still reports its results.
void Session::store(const std::function<void()>& write) {
  if (!result_.not_stored.empty()) return;
  try {
    write();
  } catch (const Error& error) {
    result_.not_stored = error.what();
  }
}

void Session::conclude() {
  const char* const outcome = result_.interrupted ? "interrupted"
                              : result_.winner    ? "done"
                                                  : "no winner";
  store([&] {
    if (result_.winner && !result_.keeps_earlier) db_.set_winner(result_.id, *result_.winner);
    db_.end_session(result_.id, outcome);
    const auto replaced = db_.discarded();
    for (std::size_t i = replaced_before_; i < replaced.size(); ++i) {
      result_.notes.push_back("replaced " + replaced[i].text());
    }
    db_.confirm();
  });
}

// The first result must not wait for peaks, so they are measured last: those that this problem's
// roofline needs, then others while the budget lasts, or for a fixed share of it. Later sessions
// measure what is missing then.
void Session::measure_peaks() {
  const double left_s = budget_.remaining_s();
  const double allowed_s = std::max(std::isinf(left_s) ? 0 : left_s, peaks_share * planned_s());
  const Lap lap(result_.time.peaks);
  try {
    peaks_.measure(
        pool_.lead(), allowed_s, [this] { return stopped(); },
        [this](const std::string& what) { observer_.on_phase(what); },
        [this](const std::vector<Ceiling>& measured) {
          store([&] { db_.set_ceilings(result_.device, measured); });
        });
    result_.ceilings = peaks_.of_the_problem();
  } catch (const Error& error) {
    if (error.status() == Status::interrupted) throw;
    result_.notes.push_back(std::string("no peaks, so no share of the roofline: ") + error.what());
  }
}

// Peaks can show that a launch is too long, but not that it is short: the default may be far below
// the roofline, on an emulator by orders of magnitude. So the default is timed first, if necessary
// on successively smaller problems.
void Session::plan_search() {
  constexpr int most_attempts = 3;
  observer_.on_phase("timing the default configuration");
  const double full_s = peaks_.roof_s(result_.work) /
                        (result_.device.is_cpu() ? assumed_efficiency_cpu : assumed_efficiency_gpu);
  if (full_s > longest_launch * planned_s()) choose_stand_in(full_s);
  for (int attempt = 0; attempt < most_attempts && !stopped(); ++attempt) {
    const Space space = operation_.space(search_problem(), result_.device);
    if (!space.valid(result_.default_config)) break;
    const TrialLimits allowed = limits_of(result_.default_config);
    const Trial& trial = evaluate(search_problem(), result_.default_config, allowed);
    if (!trial.ok() && trial.failure != Status::timeout) break;
    const double launch_s = trial.ok() ? trial.measurement.median_us * 1e-6 : 2 * allowed.run_s;
    if (launch_s <= longest_launch * planned_s() || !choose_stand_in(launch_s * scale())) break;
  }
  if (!result_.stand_in) return;
  result_.notes.push_back(
      fmt::format("one launch takes about {:.2g} s: searching on the proxy problem {} (fewer tiles "
                  "of the same kernels), "
                  "confirming at full size",
                  result_.stand_in->estimated_s, result_.stand_in->problem.dims_text()));
  observer_.on_phase(result_.notes.back());
}

double Session::planned_s() const {
  return budget_.kind() == Budget::Kind::seconds ? options_.budget.amount() : budget_without_time_s;
}

// `full_s` is the time of one launch of the full problem. Returns false if there is no smaller
// stand-in than the current one.
bool Session::choose_stand_in(double full_s) {
  const double wanted_s = std::max(stand_in_launch * planned_s(), 0.02);
  Problem smaller = operation_.stand_in(result_.problem, wanted_s / full_s);
  if (smaller == search_problem()) return false;
  const Work work = operation_.work(smaller);
  result_.stand_in = StandIn{std::move(smaller), work, full_s};
  return true;
}

// Returns the work of the full problem divided by that of the problem being searched.
double Session::scale() const {
  const Work full = result_.work, less = operation_.work(search_problem());
  return full.flops > 0 ? full.flops / less.flops : full.bytes / less.bytes;
}

void Session::search() {
  if (stopped()) return;
  const Space space = limited(operation_.space(search_problem(), result_.device), options_.limits);
  if (space.count() == 0) {
    result_.notes.push_back(
        "the proxy problem has no configuration within the limits, so that "
        "nothing was searched; a longer budget searches the problem itself");
    return;
  }
  observer_.on_phase(space.count() == 1
                         ? "searching the only configuration"
                         : fmt::format("searching {} configurations", space.count()));
  std::vector<Choice> first;
  for (const Config& config : seeds(space, result_, options_, db_))
    first.push_back(*space.choice(config));
  const auto strategy =
      find_strategy(options_.strategy)->create({&space, std::move(first), options_.seed});
  // The default and the user's configurations are tried regardless of the budget.
  const std::size_t least = 1 + options_.try_first.size();
  const auto more = [&] {
    return !stopped() && (result_.trials.size() < least || (!budget_.spent() && time_for_finals()));
  };
  while (more()) {
    const auto tried = result_.trials.size();
    ask(*strategy, space, std::max(budget_.remaining_trials(), least - std::min(least, tried)));
    if (pool_.in_flight() == 0) break;
    tell(*strategy, space, pool_.next());
  }
  pool_.cancel();
  while (pool_.in_flight() > 0) tell(*strategy, space, pool_.next());
}

// Queues as many candidates as the pool accepts, with at most `most` in flight.
void Session::ask(Strategy& strategy, const Space& space, std::uint64_t most) {
  for (int free = pool_.free(); free > 0 && pool_.in_flight() < most;) {
    const auto choice = strategy.ask();
    if (!choice) return;
    const Config config = space.config(*choice);
    if (const Trial* known = find_trial(result_.trials, config, search_problem().key())) {
      strategy.tell(*choice, *known);
    } else {
      pool_.evaluate(search_problem(), config, limits_of(config));
      --free;
    }
  }
}

void Session::tell(Strategy& strategy, const Space& space, Evaluated evaluated) {
  if (!evaluated.retired.empty()) {
    result_.notes.push_back(evaluated.retired + "; the search continued without it");
  }
  store([&] { store_lost(std::move(evaluated.lost), db_, result_); });
  if (evaluated.trial.failure == Status::interrupted) return;
  const auto choice = space.choice(evaluated.trial.config);
  const Trial& trial = record(std::move(evaluated.trial), static_cast<double>(pool_.size()));
  if (choice) strategy.tell(*choice, trial);
  pool_.set_limits(limits());
}

// A candidate much slower than the best is cut off. The first candidate has no such bound and gets
// what the budget allows.
TrialLimits Session::limits() const {
  TrialLimits limits;
  limits.cold = options_.cold;
  const Trial* best = best_trial(result_.trials, search_problem().key());
  const bool cpu = result_.device.is_cpu();
  limits.best_us = best != nullptr ? best->measurement.median_us : 0;
  limits.run_s = best != nullptr ? std::max(cpu ? 3.0 : 1.0, 20e-6 * limits.best_us)
                                 : std::clamp(planned_s(), 10.0, 60.0);
  limits.compile_s = std::clamp(budget_.remaining_s(), 20.0, 120.0);
  limits.measure_s = std::clamp(
      options_.budget.kind() == Budget::Kind::seconds ? options_.budget.amount() / 100 : 1.0, 0.1,
      cpu ? 1.0 : 0.5);
  return limits;
}

// Estimates the time of one launch of the full problem from the default's time, in seconds.
double Session::full_launch_s() const {
  const Trial* best = best_trial(result_.trials, search_problem().key());
  if (best == nullptr) return 0;
  double slowest_us = best->measurement.median_us;
  for (const auto& trial : result_.trials) {
    if (trial.ok() && trial.config == result_.default_config) {
      slowest_us = std::max(slowest_us, trial.measurement.median_us);
    }
  }
  return slowest_us * 1e-6 * scale();
}

bool Session::time_for_finals() {
  const double budget_s = options_.budget.amount();
  if (budget_.kind() != Budget::Kind::seconds) return true;
  // The finals need a checked launch of default and winner, five rounds of both and one more check;
  // after a search on a stand-in also the inputs and reference of the full problem.
  const double launches = result_.stand_in ? 16 : 14;
  const double needed = launches * full_launch_s() + (result_.stand_in ? 0.05 * budget_s : 0);
  if (needed > 0.6 * budget_s && !warned_) {
    result_.notes.push_back(fmt::format(
        "certifying takes about {:.0f} s at this size, much of the budget or more than it",
        needed));
    warned_ = true;
  }
  return budget_.remaining_s() > std::clamp(needed, 0.1 * budget_s, 0.6 * budget_s);
}

TrialLimits Session::limits_of(const Config& config) const {
  TrialLimits allowed = limits();
  allowed.reject_spills = options_.reject_spills && config != result_.default_config;
  return allowed;
}

const Trial& Session::evaluate(const Problem& problem, const Config& config,
                               const TrialLimits& allowed) {
  Evaluator& lead = pool_.lead();
  Trial trial = lead.evaluate(problem, config, allowed);
  store([&] { store_lost(lead.take_lost(), db_, result_); });
  return record(std::move(trial));
}

const Trial& Session::record(Trial trial, double at_once) {
  result_.time.compile += trial.compile_s / at_once;
  result_.time.verify += trial.verify_s / at_once;
  result_.time.measure += trial.measure_s / at_once;
  store([&] { db_.add_trial(result_.id, trial); });
  result_.trials.push_back(std::move(trial));
  budget_.count_trial();
  observer_.on_trial(result_, budget_);
  return result_.trials.back();
}

void Session::time_naive() {
  if (!operation_.naive) return;
  observer_.on_phase("timing a kernel with one thread per output");
  auto naive_limits = limits();
  naive_limits.best_us = 0;
  naive_limits.run_s = 120;
  const Trial* known = find_trial(result_.trials, *operation_.naive, search_problem().key());
  const bool measured = known != nullptr && !known->measurement.raced;
  result_.naive = measured ? *known : evaluate(search_problem(), *operation_.naive, naive_limits);
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
  return about;
}

SessionResult tune(EvaluatorPool& pool, TunedDb& db, const Problem& problem,
                   const SessionOptions& options, SessionObserver& observer,
                   const std::atomic<bool>& stop) {
  return Session(pool, db, problem, options, observer, stop).run();
}

SessionResult tune(Evaluator& evaluator, TunedDb& db, const Problem& problem,
                   const SessionOptions& options, SessionObserver& observer,
                   const std::atomic<bool>& stop) {
  EvaluatorPool pool({&evaluator});
  return tune(pool, db, problem, options, observer, stop);
}

}  // namespace greta::tuner
