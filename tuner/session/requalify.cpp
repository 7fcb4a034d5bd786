#include "tuner/session/requalify.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace greta::tuner {
namespace {

constexpr int most_requalified = 5;

/// Returns the default, the winner and the best recorded configurations, if they are valid here.
std::vector<Config> candidates(const Operation& operation, const TunedDb& db,
                               const StoredWinner& result, const DeviceInfo& device) {
  const Space space = operation.space(result.problem, device);
  const Instance instance(operation, result.problem, device);
  std::vector<Config> configs{operation.default_config(result.problem, device)};
  const auto add = [&](const Config& stored) {
    const auto migrated = instance.migrate(stored);
    if (!migrated || !space.valid(migrated->config)) return;
    const Config& config = migrated->config;
    const bool known = std::find(configs.begin(), configs.end(), config) != configs.end();
    if (!known) configs.push_back(config);
  };
  add(result.winner.config);
  for (const auto& config : db.fastest_configs(device.fingerprint(), result.problem.key(),
                                               result.winner.cold, most_requalified)) {
    add(config);
  }
  return configs;
}

/// Stores the old winner as the winner of a new session.
void keep(const Operation& operation, TunedDb& db, const StoredWinner& result,
          const DeviceInfo& device, const SessionOptions& options, const Winner& winner) {
  SessionOptions about = options;
  about.strategy = "requalify";
  about.command = fmt::format("as certified on {} with {}", result.provenance.started_utc,
                              result.provenance.driver);
  const auto session = db.begin_session(session_record(operation, device, result.problem, about));
  db.set_winner(session, winner);
  db.end_session(session, "requalified");
}

}  // namespace

bool keys_outlive_drivers(const DeviceInfo& device) {
  return device.language != Language::glsl;
}

Requalification requalify(Evaluator& evaluator, TunedDb& db, const StoredWinner& result,
                          const SessionOptions& options, SessionObserver& observer,
                          const std::atomic<bool>& stop) {
  const DeviceInfo& device = evaluator.device();
  const Operation& operation = evaluator.catalog().at(result.problem.op);
  const auto configs = candidates(operation, db, result, device);
  SessionOptions now = options;
  now.cold = result.winner.cold;
  TrialLimits limits;
  limits.cold = now.cold;
  limits.run_s = std::max(60.0, 20e-6 * result.winner.measurement.median_us);
  Requalification outcome;
  Winner winner = result.winner;
  // A configuration that was carried over is certified again: its kernels have no earlier keys.
  if (const auto migrated = Instance(operation, result.problem, device).migrate(winner.config)) {
    winner.config = migrated->config;
  } else {
    outcome.notes.push_back(migrated.failure().message);
  }
  const bool driver_compiles =
      result.provenance.driver != device.driver && !keys_outlive_drivers(device);
  observer.on_phase(fmt::format("compiling {} configurations", configs.size()));
  bool winner_is_right = false;
  for (const auto& config : configs) {
    if (stop) return outcome;
    const Trial trial = evaluator.verify(result.problem, config, options.seed, limits);
    const auto before = db.content_keys(result, config);
    ++outcome.compiled;
    outcome.unchanged += trial.ok() && before == trial.content_keys ? 1 : 0;
    if (config != winner.config || !trial.ok()) continue;
    winner_is_right = true;
    winner.verdict = trial.verdict;
    winner.kernels = trial.kernels;
  }
  for (const Trial& lost : evaluator.take_lost()) outcome.notes.push_back(lost.message);
  outcome.stands = winner_is_right && !driver_compiles && outcome.unchanged == outcome.compiled;
  if (outcome.stands) {
    keep(operation, db, result, device, now, winner);
    outcome.winner = std::move(winner);
    return outcome;
  }
  now.budget = Budget::parse("1").value();  // the first configurations are tried regardless of it
  now.try_first.assign(configs.begin() + 1, configs.end());
  auto session = tune(evaluator, db, result.problem, now, observer, stop);
  outcome.winner = std::move(session.winner);
  outcome.notes.insert(outcome.notes.end(), session.notes.begin(), session.notes.end());
  return outcome;
}

}  // namespace greta::tuner
