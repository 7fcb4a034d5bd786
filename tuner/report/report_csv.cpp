#include "tuner/report/report.hpp"

namespace greta::tuner {
namespace {

CsvRow trial_row(const Problem& problem, const Work& work, const Trial& trial) {
  const bool stand_in = trial.problem_key != problem.key();
  const auto ran = stand_in ? Problem::parse(trial.problem_key) : problem;
  CsvRow row;
  row.set_problem(ran ? *ran : problem);
  row.origin = stand_in ? "stand_in" : "trial";
  row.config = trial.config.text();
  row.status = trial.ok() ? "ok" : to_string(*trial.failure);
  row.set_measurement(trial.measurement);
  row.set_verdict(trial.verdict);
  if (!stand_in) row.set_work(work);
  return row;
}

CsvRow winner_row(const Problem& problem, const Work& work, const Winner& winner) {
  CsvRow row;
  row.set_problem(problem);
  row.origin = "winner";
  row.config = winner.config.text();
  row.status = "ok";
  row.set_measurement(winner.measurement);
  row.set_verdict(winner.verdict);
  row.set_work(work);
  row.speedup = winner.speedup;
  row.speedup_low = winner.speedup_low;
  row.speedup_high = winner.speedup_high;
  row.roofline = winner.roofline;
  return row;
}

CsvRow default_row(const Problem& problem, const Work& work, const Winner& winner,
                   const std::string& config) {
  CsvRow row;
  row.set_problem(problem);
  row.origin = "default";
  row.config = config;
  row.status = "ok";
  row.us = winner.default_us;
  row.samples = winner.default_samples_us.size();
  if (row.samples > 0) row.blocks_us = {winner.default_samples_us};
  row.set_work(work);
  return row;
}

// What was certified: the default, where it ran, and the winner.
void add_certified(std::vector<CsvRow>& rows, const Problem& problem, const Work& work,
                   const Winner& winner, const std::string& default_config) {
  if (winner.default_us > 0) rows.push_back(default_row(problem, work, winner, default_config));
  rows.push_back(winner_row(problem, work, winner));
}

// Where stored rows come from.
void set_origin(std::vector<CsvRow>& rows, const DeviceInfo& device, const Provenance& provenance,
                bool cold) {
  for (auto& row : rows) {
    row.set_device(device);
    row.driver = provenance.driver;
    row.compiler = provenance.compiler;
    row.greta_version = provenance.greta_version;
    row.cache = cold ? "cold" : "warm";
    row.date = provenance.started_utc;
  }
}

}  // namespace

std::vector<CsvRow> csv_rows(const SessionResult& result, bool cold, const std::string& date) {
  std::vector<CsvRow> rows;
  for (const auto& trial : result.trials) {
    rows.push_back(trial_row(result.problem, result.work, trial));
  }
  if (result.winner) {
    add_certified(rows, result.problem, result.work, *result.winner, result.default_config.text());
  }
  for (auto& row : rows) {
    row.set_device(result.device);
    row.cache = cold ? "cold" : "warm";
    row.date = date;
  }
  return rows;
}

std::vector<CsvRow> csv_rows(const Catalog& catalog, const StoredSession& session,
                             const DeviceInfo& device, const std::vector<Trial>& trials) {
  std::vector<CsvRow> rows;
  const Work work = work_of(catalog, session.problem);
  for (const auto& trial : trials) rows.push_back(trial_row(session.problem, work, trial));
  set_origin(rows, device, session.provenance, session.cold);
  return rows;
}

std::vector<CsvRow> csv_rows(const Catalog& catalog, const StoredWinner& stored) {
  std::vector<CsvRow> rows;
  add_certified(rows, stored.problem, work_of(catalog, stored.problem), stored.winner,
                stored.winner.is_default ? stored.winner.config.text() : "");
  set_origin(rows, stored.device, stored.provenance, stored.winner.cold);
  return rows;
}

}  // namespace greta::tuner
