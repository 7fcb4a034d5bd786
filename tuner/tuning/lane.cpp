#include "tuner/tuning/lane.hpp"

#include <algorithm>
#include <utility>

#include "db/lookup/lookup.hpp"
#include "kernels/model/problem_rules.hpp"
#include "tuner/session/contest.hpp"
#include "tuner/tuning/card_control.hpp"

namespace greta::tuner {
namespace {

// Share of a time budget reserved for the comparison of devices, and its time limit under a budget
// of trials.
constexpr double contest_share = 0.1;
constexpr double contest_s = 20;

/// Returns whether one session may use both devices at once: different cards of one model that run
/// the same kernels with the same driver.
bool may_share_a_pool(const DeviceInfo& a, const DeviceInfo& b) {
  return a.fingerprint() == b.fingerprint() && a.driver == b.driver && a.compiler == b.compiler &&
         a.f16_storage == b.f16_storage && a.f16_arithmetic == b.f16_arithmetic &&
         a.matrix_operations == b.matrix_operations && !same_card(a, b);
}

std::vector<std::vector<Evaluator*>> models_of(const std::vector<Evaluator*>& evaluators) {
  std::vector<std::vector<Evaluator*>> models;
  for (Evaluator* const evaluator : evaluators) {
    const auto same = std::find_if(models.begin(), models.end(), [&](const auto& members) {
      return std::all_of(members.begin(), members.end(), [&](const Evaluator* member) {
        return may_share_a_pool(member->device(), evaluator->device());
      });
    });
    if (same != models.end()) {
      same->push_back(evaluator);
    } else {
      models.push_back({evaluator});
    }
  }
  return models;
}

bool has_card(const LaneCards& lane, const DeviceInfo& device) {
  return std::any_of(lane.begin(), lane.end(), [&](const auto& cards) {
    return std::any_of(cards.begin(), cards.end(),
                       [&](const Evaluator* card) { return same_card(card->device(), device); });
  });
}

/// Adds a model's cards to the lanes: each to the lane that has this card, otherwise to one with
/// the fewest.
void add_model(std::vector<LaneCards>& lanes, const std::vector<Evaluator*>& cards) {
  for (auto& lane : lanes) lane.emplace_back();
  std::vector<Evaluator*> free;
  for (Evaluator* const card : cards) {
    const auto own = std::find_if(lanes.begin(), lanes.end(), [&](const LaneCards& lane) {
      return has_card(lane, card->device());
    });
    if (own != lanes.end()) {
      own->back().push_back(card);
    } else {
      free.push_back(card);
    }
  }
  for (Evaluator* const card : free) {
    std::min_element(
        lanes.begin(), lanes.end(),
        [](const LaneCards& a, const LaneCards& b) { return a.back().size() < b.back().size(); })
        ->back()
        .push_back(card);
  }
}

/// Passes the events of a session on, with the session's device.
class LaneObserver final : public SessionObserver {
 public:
  LaneObserver(TunerObserver& observer, const DeviceInfo& device)
      : observer_(observer), device_(device) {}
  void on_phase(const std::string& what) override { observer_.on_phase(device_, what); }
  void on_trial(const SessionResult& result, const Budget& budget) override {
    observer_.on_trial(result, budget);
  }

 private:
  TunerObserver& observer_;
  const DeviceInfo device_;
};

// Returns the problem in the other type of 16 bits, in which kernels take about the same time;
// nothing if it is in no such type, or the operation has no other.
std::optional<Problem> in_other_16_bits(const Operation& operation, Problem problem) {
  const auto other = [](DType type) {
    return type == DType::f16 ? DType::bf16 : type == DType::bf16 ? DType::f16 : type;
  };
  const DType before = problem.dtype;
  problem.dtype = other(problem.dtype);
  problem.out_dtype = other(problem.out_dtype);
  if (problem.dtype == before || !check_problem(operation, problem)) return std::nullopt;
  return problem;
}

Lookup open_lookup(const RunContext& context, const DeviceInfo& device, const LookupFiles& files) {
  LookupOptions options;
  options.catalog = context.options.catalog;
  options.cold = context.options.cold;
  options.allow_unsafe = true;  // the device is already open without the avoided features
  return Lookup::open(device.without_libraries(), files, options);
}

}  // namespace

std::vector<LaneCards> make_lanes(const std::vector<Evaluator*>& evaluators, std::size_t most) {
  const auto models = models_of(evaluators);
  std::size_t count = std::max<std::size_t>(most, 1);
  for (const auto& cards : models) count = std::min(count, cards.size());
  std::vector<LaneCards> lanes(count);
  for (const auto& cards : models) add_model(lanes, cards);
  // Two models may share cards so unevenly that a lane would lack a model.
  const bool whole = std::all_of(lanes.begin(), lanes.end(), [](const LaneCards& lane) {
    return std::none_of(lane.begin(), lane.end(), [](const auto& cards) { return cards.empty(); });
  });
  return whole ? lanes : make_lanes(evaluators, count - 1);
}

Result<std::vector<Config>> configs_to_try(const Operation& operation, const TuningTask& task,
                                           const DeviceInfo& device) {
  std::vector<Config> configs;
  if (task.try_first.empty()) return configs;
  const Space space = operation.space(task.problem, device);
  const Instance instance(operation, task.problem, device);
  for (const Config& wanted : task.try_first) {
    const auto migrated = instance.migrate(wanted);  // as an older report has it
    auto config = space.parse(migrated ? migrated->config.text() : wanted.text());
    if (!config) return bad_field("try", "", config.failure().message);
    if (!task.limits.empty() && !limited(space, task.limits).valid(*config)) {
      return bad_field("try", config->shown(), "is outside the limits " + task.limits.text());
    }
    configs.push_back(*std::move(config));
  }
  return configs;
}

Lane::Lane(LaneCards cards, const RunContext& context) : context_(context) {
  for (auto& model : cards) models_.push_back({.cards = std::move(model)});
}

std::vector<DeviceInfo> Lane::cards() const {
  std::vector<DeviceInfo> all;
  if (lost_) return all;
  for (const Model& model : models_) {
    if (model.pool) {
      for (const Evaluator* card : model.pool->members()) all.push_back(card->device());
    } else {
      for (const Evaluator* card : model.cards) all.push_back(card->device());
    }
  }
  return all;
}

const DeviceInfo& Lane::device() const {
  const Model& model = models_[current_];
  return model.pool ? model.pool->device() : model.cards.front()->device();
}

bool Lane::lose_card() {
  Model& model = models_[current_];
  if (model.pool) model.pool->retire_lead();
  lost_ = !model.pool || model.pool->size() == 0;  // without a pool, no card passed the control
  return !lost_;
}

void Lane::open_pool(Model& model, const Problem& problem, std::vector<std::string>& notes) {
  if (model.pool) return;
  CardControl control{model.cards, {}};
  if (model.cards.size() > 1) {
    context_.observer.on_phase(model.cards.front()->device(), "comparing the cards");
    control =
        compare_cards(model.cards, problem, context_.options.cold, context_.seed, context_.stop);
  }
  notes = control.notes;
  model.pool = std::make_unique<EvaluatorPool>(control.alike);
}

void Lane::report_lost(Model& model) {
  const auto lost = model.pool->lost();
  for (; model.lost < lost.size(); ++model.lost) {
    context_.observer.on_card_lost(lost[model.lost]);
  }
}

SessionOptions Lane::session_options(const TuningTask& task, std::optional<double> seconds) const {
  const TunerOptions& options = context_.options;
  SessionOptions session;
  session.budget = seconds ? Budget::seconds(*seconds) : options.budget;
  if (const std::size_t entrants = models_.size() * (1 + task.beside.size()); entrants > 1) {
    const auto parts = static_cast<double>(entrants);
    session.budget = session.budget.part((1 - contest_share) / parts);
  }
  if (!seconds && task.share < 1) session.budget = session.budget.part(task.share);
  session.strategy = options.strategy;
  session.seed = context_.seed;
  session.cold = options.cold;
  session.rounds = options.rounds;
  session.compare_naive = options.compare_naive;
  session.reject_spills = options.reject_spills;
  session.started_utc = context_.date;
  session.command = options.name + " " + task.problem.key();
  session.limits = task.limits;
  session.run = context_.run;
  session.pin = options.pin;
  session.retry_failed = options.retry_failed;
  session.for_energy = options.for_energy;
  session.allow_vendor = options.allow_vendor;
  session.provisional = options.provisional;
  return session;
}

// Returns the configurations that each database alone would answer for the problem, the user's
// first: this device's winner, that of a similar shape, or another device's; and for the problem in
// the other type of 16 bits, if a winner was measured.
std::vector<Config> Lane::suggestions(const Problem& problem, const DeviceInfo& device) const {
  std::vector<LookupFiles> sources{{.own = context_.db.file(), .application = {}, .shipped = {}}};
  for (const auto& file : context_.options.application) sources.push_back({{}, {file}, {}});
  if (!context_.options.shipped.empty()) sources.push_back({{}, {}, context_.options.shipped});
  const Operation& operation = context_.options.catalog.at(problem.op);
  std::vector<Config> configs;
  for (const auto& files : sources) {
    const Lookup lookup = open_lookup(context_, device, files);
    const Answer& answer = lookup.find(problem);
    if (answer.origin != LookupOrigin::fallback) configs.push_back(answer.config);
    if (const auto twin = in_other_16_bits(operation, problem)) {
      const Answer& measured = lookup.find(*twin);
      if (!measured.problem.empty()) configs.push_back(measured.config);
    }
    if (files.own) continue;  // on_damage() has listed its rows
    for (const auto& line : lookup.unreadable()) context_.observer.on_unreadable(line);
  }
  return configs;
}

// Returns what all databases together answer now.
Config Lane::answered(const Problem& problem, const DeviceInfo& device) const {
  const LookupFiles files{.own = context_.db.file(),
                          .application = context_.options.application,
                          .shipped = context_.options.shipped};
  return open_lookup(context_, device, files).find(problem).config;
}

TaskResult Lane::tune(const TuningTask& task, std::optional<double> seconds) {
  SessionOptions options = session_options(task, seconds);
  TaskResult result;
  for (current_ = 0; current_ < models_.size(); ++current_) {
    if (context_.stop) break;
    Model& model = models_[current_];
    std::vector<std::string> notes;
    open_pool(model, task.problem, notes);
    for (const Problem& form : task.forms()) {
      if (context_.stop && !(form == task.problem)) break;
      result.sessions.push_back(tune_form(task, form, options, notes));
      if (!result.sessions.back().not_stored.empty()) return result;
    }
  }
  current_ = 0;
  compare(result, options);
  return result;
}

SessionResult Lane::tune_form(const TuningTask& task, const Problem& form, SessionOptions& options,
                              std::vector<std::string> notes) {
  Model& model = models_[current_];
  EvaluatorPool& pool = *model.pool;
  const DeviceInfo device = pool.device();
  TuningTask own = task;
  own.problem = form;
  SessionStart start{form, {}, models_.size()};
  for (const Evaluator* card : pool.members()) start.cards.push_back(card->device());
  context_.observer.on_session(start);
  options.command = context_.options.name + " " + form.key();
  options.try_first = configs_to_try(context_.options.catalog.at(form.op), own, device).value();
  options.answered = answered(form, device);
  options.suggested = suggestions(form, device);
  LaneObserver observer(context_.observer, device);
  SessionResult session =
      greta::tuner::tune(pool, context_.db, form, options, observer, context_.stop);
  session.notes.insert(session.notes.begin(), notes.begin(), notes.end());
  report_lost(model);
  context_.observer.on_session_end(session);
  return session;
}

void Lane::compare(TaskResult& result, const SessionOptions& options) {
  if (models_.empty() || result.sessions.size() % models_.size() != 0) return;  // stopped
  const std::size_t forms = result.sessions.size() / models_.size();
  std::vector<Entrant> entrants;
  for (std::size_t i = 0; i < result.sessions.size(); ++i) {
    if (result.sessions[i].winner) {
      entrants.push_back({models_[i / forms].pool->lead(), result.sessions[i]});
    }
  }
  if (entrants.size() < 2 || context_.stop) return;
  context_.observer.on_phase(device(), "comparing the winners in alternating runs");
  const bool timed = options.budget.kind() == Budget::Kind::seconds;
  try {
    result.contest =
        hold_contest(entrants, options, timed ? contest_share * options.budget.amount() : contest_s,
                     context_.stop);
  } catch (const Error& error) {
    if (error.status() != Status::interrupted) throw;
    return;
  }
  for (std::size_t i = 0; i < result.sessions.size(); ++i) {
    store_lost(models_[i / forms].pool->lead().take_lost(), context_.db, result.sessions[i]);
  }
  const Problem& fastest = entrants[result.contest->fastest].session.problem;
  for (const auto& other : result.contest->others) {
    // The database has comparisons of sessions of one problem.
    const bool same = entrants[other.entrant].session.problem == fastest;
    if (same && other.comparison.measured()) context_.db.set_comparison(other.comparison);
  }
}

}  // namespace greta::tuner
