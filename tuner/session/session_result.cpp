#include "tuner/session/session_result.hpp"

#include <algorithm>
#include <utility>

namespace greta::tuner {

std::vector<Rejection> most_frequent_rejections(const Space& space) {
  constexpr std::size_t most = 5;
  auto rates = space.rejection_rates(1, 2000);
  std::stable_sort(rates.begin(), rates.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<Rejection> list;
  for (const auto& [name, share] : rates) {
    if (list.size() == most || share <= 0) break;
    list.push_back({name, space.reason_of(name), share});
  }
  return list;
}

// These are not trials of the search: restarted work has its own trial.
void store_lost(std::vector<Trial> lost, TunedDb& db, SessionResult& result) {
  for (Trial& trial : lost) {
    if (trial.problem_key.empty()) trial.problem_key = result.problem.key();
    const bool named = !trial.config.variant.empty();
    result.notes.push_back(named ? trial.config.shown() + ": " + trial.message : trial.message);
    if (!named) trial.config = result.default_config;
    trial.phase = TrialPhase::lost;
    db.add_trial(result.id, trial);
  }
}

SessionResult read_result(SessionResult about, std::int64_t session, bool cold, const TunedDb& db) {
  SessionResult result = std::move(about);
  result.id = session;
  result.finished_before = true;
  for (Trial& trial : db.trials(session)) {
    if (trial.phase != TrialPhase::lost) result.trials.push_back(std::move(trial));
  }
  result.finalists = db.finalists(session);
  const auto winners = db.find_winners(result.device.fingerprint(), result.problem.key(), cold);
  const auto own = std::find_if(winners.begin(), winners.end(), [&](const StoredWinner& stored) {
    return stored.session == session;
  });
  result.keeps_earlier = own == winners.end();
  if (!winners.empty()) result.winner = (result.keeps_earlier ? winners.front() : *own).winner;
  return result;
}

const Trial* find_trial(const std::vector<Trial>& trials, const Config& config,
                        const std::string& problem_key) {
  const auto found = std::find_if(trials.rbegin(), trials.rend(), [&](const Trial& trial) {
    return trial.config == config && trial.problem_key == problem_key;
  });
  return found != trials.rend() ? &*found : nullptr;
}

bool was_killed(const Trial& trial) {
  return trial.failure == Status::crash &&
         trial.message.find("killed by signal 9") != std::string::npos;
}

const Trial* best_trial(const std::vector<Trial>& trials, const std::string& problem_key) {
  const Trial* best = nullptr;
  for (const auto& trial : trials) {
    if (!trial.ok() || trial.problem_key != problem_key) continue;
    if (best == nullptr || trial.measurement.median_us < best->measurement.median_us) {
      best = &trial;
    }
  }
  return best;
}

}  // namespace greta::tuner
