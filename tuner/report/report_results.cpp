#include "tuner/report/report.hpp"

namespace greta::tuner {
namespace {

MeasuredResult trial_result(const Problem& problem, const Work& work, const Trial& trial) {
  const bool stand_in = trial.problem_key != problem.key();
  const auto ran = stand_in ? Problem::parse(trial.problem_key) : problem;
  MeasuredResult result{
      .subject = {.problem = ran ? *ran : problem,
                  .config = trial.config,
                  .origin = stand_in ? ResultOrigin::stand_in : ResultOrigin::trial},
      .work = stand_in ? Work{} : work,
      .verdict = trial.verdict};
  if (!trial.ok()) result.failure = Failure{*trial.failure, trial.message, trial.log};
  result.set_measurement(trial.measurement);
  return result;
}

MeasuredResult winner_result(const Problem& problem, const Work& work, const Winner& winner) {
  MeasuredResult result{
      .subject = {.problem = problem, .config = winner.config, .origin = ResultOrigin::winner},
      .work = work,
      .roofline = winner.roofline,
      .verdict = winner.verdict,
      .speedup = has_ratio(winner)
                     ? Interval{winner.speedup_low, winner.speedup_high, winner.speedup}
                     : Interval{}};
  result.set_measurement(winner.measurement);
  return result;
}

MeasuredResult default_result(const Problem& problem, const Work& work, const Winner& winner,
                              const std::optional<Config>& config) {
  MeasuredResult result{
      .subject = {.problem = problem, .config = config, .origin = ResultOrigin::untuned},
      .us = {.median = winner.default_us},
      .work = work,
      .count = winner.default_samples_us.size()};
  if (result.count > 0) result.samples.blocks_us = {winner.default_samples_us};
  return result;
}

// Adds the certified results: the default, if it ran, and the winner.
void add_certified(std::vector<MeasuredResult>& results, const Problem& problem, const Work& work,
                   const Winner& winner, const std::optional<Config>& default_config) {
  if (winner.default_us > 0) {
    results.push_back(default_result(problem, work, winner, default_config));
  }
  results.push_back(winner_result(problem, work, winner));
}

void set_circumstances(std::vector<MeasuredResult>& results, const DeviceInfo& device, bool cold,
                       const std::string& date) {
  for (auto& result : results) {
    result.subject.set_device(device);
    result.subject.cache = cold ? CacheState::cold : CacheState::warm;
    result.date = date;
  }
}

// Sets the provenance of a stored result, which differs from today's.
void set_provenance(std::vector<MeasuredResult>& results, const Provenance& provenance) {
  for (auto& result : results) {
    result.subject.driver = provenance.driver;
    result.subject.compiler = provenance.compiler;
    result.subject.greta_version = provenance.greta_version;
  }
}

}  // namespace

std::vector<MeasuredResult> measured_results(const SessionResult& result, bool cold,
                                             const std::string& date) {
  std::vector<MeasuredResult> results;
  for (const auto& trial : result.trials) {
    results.push_back(trial_result(result.problem, result.work, trial));
  }
  if (result.winner) {
    add_certified(results, result.problem, result.work, *result.winner, result.default_config);
  }
  set_circumstances(results, result.device, cold, date);
  return results;
}

std::vector<MeasuredResult> measured_results(const Catalog& catalog, const StoredSession& session,
                                             const DeviceInfo& device,
                                             const std::vector<Trial>& trials) {
  std::vector<MeasuredResult> results;
  const Work work = work_of(catalog, session.problem);
  for (const auto& trial : trials) results.push_back(trial_result(session.problem, work, trial));
  set_circumstances(results, device, session.cold, session.provenance.started_utc);
  set_provenance(results, session.provenance);
  return results;
}

std::vector<MeasuredResult> measured_results(const Catalog& catalog, const StoredWinner& stored) {
  std::vector<MeasuredResult> results;
  const Winner& winner = stored.winner;
  add_certified(results, stored.problem, work_of(catalog, stored.problem), winner,
                winner.is_default ? std::optional(winner.config) : std::nullopt);
  set_circumstances(results, stored.device, winner.cold, stored.provenance.started_utc);
  set_provenance(results, stored.provenance);
  return results;
}

}  // namespace greta::tuner
