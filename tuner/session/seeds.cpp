#include "tuner/session/seeds.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace greta::tuner {

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

std::vector<Config> seeds(const Operation& operation, const Space& space,
                          const SessionResult& result, const SessionOptions& options,
                          const TunedDb& db) {
  const Instance instance(operation, result.problem, result.device);
  constexpr int most_remembered = 4;
  const auto fingerprint = result.device.fingerprint();
  const auto key = result.problem.key();
  std::vector<Config> configs{result.default_config};
  const auto add = [&](const Config& config) {
    const bool known = std::find(configs.begin(), configs.end(), config) != configs.end();
    if (!known && space.valid(config)) configs.push_back(config);
  };
  for (const auto& config : options.try_first) add(config);
  for (const auto& config : result.known_winners) add(config);
  for (const auto& config : db.fastest_configs(fingerprint, key, options.cold, most_remembered)) {
    if (const auto migrated = instance.migrate(config)) add(migrated->config);
  }
  for (const auto& config : options.suggested) add(config);
  std::erase_if(configs, [&](const Config& config) { return !space.valid(config); });
  return configs;
}

}  // namespace greta::tuner
