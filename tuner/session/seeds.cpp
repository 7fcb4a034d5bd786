#include "tuner/session/seeds.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace greta::tuner {
namespace {

void add_new(std::vector<Config>& configs, const Space& space, const Config& config) {
  const bool known = std::find(configs.begin(), configs.end(), config) != configs.end();
  if (!known && space.valid(config)) configs.push_back(config);
}

}  // namespace

void find_known_winners(const Operation& operation, const Space& space, bool cold,
                        const TunedDb& db, SessionResult& result) {
  const Instance instance(operation, result.problem, result.device);
  std::vector<Config>& known = result.known_winners;
  std::vector<std::string>& notes = result.notes;
  for (const auto& stored :
       db.find_winners(result.device.fingerprint(), result.problem.key(), cold)) {
    const auto migrated = instance.migrate(stored.winner.config);
    if (!migrated) {
      notes.push_back(fmt::format("the winner of {} is not tried: {}",
                                  stored.provenance.started_utc, migrated.failure().message));
      continue;
    }
    const Config& config = migrated->config;
    const bool again = std::find(known.begin(), known.end(), config) != known.end();
    if (again || !space.valid(config)) continue;
    if (known.empty()) result.earlier_has_ratio = has_ratio(stored.winner);
    known.push_back(config);
    if (migrated->changes.empty()) continue;
    notes.push_back(fmt::format("the winner of {} was carried over to today's template: {}",
                                stored.provenance.started_utc, fmt::join(migrated->changes, ", ")));
  }
}

bool earlier_winner_is_current(const SessionResult& result, bool cold, const Provenance& now,
                               const TunedDb& db) {
  const auto stored = db.find_winner(result.device.fingerprint(), result.problem.key(), cold);
  if (!stored || result.known_winners.empty()) return false;
  const Provenance& then = stored->provenance;
  return stored->winner.config == result.known_winners.front() && then.driver == now.driver &&
         then.compiler == now.compiler && then.template_key == now.template_key;
}

std::vector<Config> first_seeds(const Space& space, const SessionResult& result,
                                const SessionOptions& options) {
  std::vector<Config> configs;
  const auto add = [&](const Config& config) { add_new(configs, space, config); };
  add(result.default_config);
  for (const auto& config : options.try_first) add(config);
  for (const auto& config : result.known_winners) add(config);
  if (options.answered) add(*options.answered);
  return configs;
}

std::vector<Config> seeds(const Operation& operation, const Space& space,
                          const SessionResult& result, const SessionOptions& options,
                          const TunedDb& db) {
  const Instance instance(operation, result.problem, result.device);
  constexpr int most_remembered = 4;
  std::vector<Config> configs = first_seeds(space, result, options);
  for (const auto& config : db.fastest_configs(result.device.fingerprint(), result.problem.key(),
                                               options.cold, most_remembered)) {
    if (const auto migrated = instance.migrate(config)) add_new(configs, space, migrated->config);
  }
  for (const auto& config : options.suggested) add_new(configs, space, config);
  return configs;
}

}  // namespace greta::tuner
