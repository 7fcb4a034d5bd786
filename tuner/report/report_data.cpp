#include <fmt/format.h>

#include "db/json.hpp"
#include "db/values.hpp"
#include "kernels/catalog.hpp"
#include "runtime/device/version.hpp"
#include "tuner/report/report.hpp"

namespace greta {
namespace {

using nlohmann::json;

json trial_counts(const SessionResult& result) {
  json counts{{"total", result.trials.size()}, {"ok", 0}};
  for (const auto& trial : result.trials) {
    const std::string status(trial.ok() ? "ok" : to_string(*trial.failure));
    counts[status] = counts.value(status, 0) + 1;
  }
  return counts;
}

json time_json(const TimeSpent& time) {
  return {{"wall_s", time.wall},
          {"compile_s", time.compile},
          {"verify_s", time.verify},
          {"measure_s", time.measure},
          {"other_s", time.other()}};
}

json problem_json(const SessionResult& result) {
  json dims = json::object();
  for (const auto& [name, value] : result.problem.dims) dims[name] = value;
  return {{"key", result.problem.key()},
          {"op", result.problem.op},
          {"dtype", to_string(result.problem.dtype)},
          {"out_dtype", to_string(result.problem.out_dtype)},
          {"dims", dims},
          {"flops", result.work.flops},
          {"bytes", result.work.bytes}};
}

// Where and of what the rows of a file are.
struct CsvOrigin {
  const Problem& problem;
  const DeviceInfo& device;
  Provenance provenance;
  bool cold = true;
};

// One row; fields that a row does not have stay empty.
struct CsvRow {
  std::string origin;
  std::string problem_dims;
  std::string config;
  std::string status;
  double us = 0, low_us = 0, high_us = 0, p99_us = 0, spread = 0;
  double error = 0, bound = 0;
  double speedup = 0, speedup_low = 0, speedup_high = 0;
  std::size_t samples = 0;
  Work work;
  double roofline = 0;
};

std::string number(double value) {
  return value != 0 ? fmt::format("{:.6g}", value) : "";
}

// Text is quoted where it could hold a comma, a quote or a line break.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c == '\n' ? ' ' : c;
  }
  return out + "\"";
}

std::string attributes_text(const Problem& problem) {
  std::string text;
  for (const auto& [name, value] : problem.attributes) {
    text += (text.empty() ? "" : " ") + name + "=" + value;
  }
  return text;
}

std::string csv_row(const CsvOrigin& origin, const CsvRow& row) {
  const DeviceInfo& device = origin.device;
  const Problem& problem = origin.problem;
  return fmt::format(
      "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
      problem.op, to_string(problem.dtype), to_string(problem.out_dtype), row.problem_dims,
      quoted(attributes_text(problem)), device.backend, quoted(device.name), quoted(row.config),
      row.origin, row.status, number(row.us), number(row.low_us), number(row.high_us),
      number(row.p99_us), number(row.spread),
      number(row.us > 0 ? row.work.flops / row.us / 1e6 : 0),
      number(row.us > 0 ? row.work.bytes / row.us / 1e3 : 0), number(row.roofline),
      number(row.error), number(row.bound), number(row.speedup), number(row.speedup_low),
      number(row.speedup_high), origin.cold ? "cold" : "warm", row.samples,
      quoted(origin.provenance.driver), quoted(origin.provenance.compiler),
      origin.provenance.greta_version, origin.provenance.started_utc);
}

void fill(CsvRow& row, const Measurement& measurement, const Verdict& verdict) {
  row.us = measurement.median_us;
  row.low_us = measurement.low_us;
  row.high_us = measurement.high_us;
  row.p99_us = measurement.p99_us;
  row.spread = measurement.spread_percent();
  row.error = verdict.error;
  row.bound = verdict.bound;
}

CsvRow trial_row(const SessionResult& result, const Trial& trial) {
  CsvRow row;
  const bool stand_in = result.stand_in && trial.problem_key == result.stand_in->problem.key();
  row.origin = stand_in ? "stand_in" : "trial";
  const Problem& ran = stand_in ? result.stand_in->problem : result.problem;
  row.problem_dims = ran.dims_text();
  row.config = trial.config.text();
  row.status = trial.ok() ? "ok" : to_string(*trial.failure);
  fill(row, trial.measurement, trial.verdict);
  row.samples = trial.measurement.samples_us.size();
  row.work = stand_in ? Work{} : result.work;
  return row;
}

CsvRow winner_row(const Problem& problem, const Work& work, const Winner& winner) {
  CsvRow row;
  row.origin = "winner";
  row.problem_dims = problem.dims_text();
  row.config = winner.config.text();
  row.status = "ok";
  fill(row, winner.measurement, winner.verdict);
  row.speedup = winner.speedup;
  row.speedup_low = winner.speedup_low;
  row.speedup_high = winner.speedup_high;
  row.samples = static_cast<std::size_t>(winner.rounds);
  row.work = work;
  row.roofline = winner.roofline;
  return row;
}

CsvRow default_row(const Problem& problem, const Work& work, const Winner& winner,
                   const std::string& config) {
  CsvRow row;
  row.origin = "default";
  row.problem_dims = problem.dims_text();
  row.config = config;
  row.status = "ok";
  row.us = winner.default_us;
  row.samples = static_cast<std::size_t>(winner.rounds);
  row.work = work;
  return row;
}

// What was certified: the default, where it ran, and the winner.
std::string certified_rows(const CsvOrigin& origin, const Work& work, const Winner& winner,
                           const std::string& default_config) {
  std::string rows;
  if (winner.default_us > 0) {
    rows += csv_row(origin, default_row(origin.problem, work, winner, default_config));
  }
  return rows + csv_row(origin, winner_row(origin.problem, work, winner));
}

}  // namespace

Work work_of(const Problem& problem) {
  const auto* kernel_template = find_template(problem.op);
  const bool known = kernel_template != nullptr && check_problem(*kernel_template, problem);
  return known ? kernel_template->work(problem) : Work{};
}

json result_json(const StoredWinner& stored) {
  auto winner = to_json(stored.winner);
  winner["config_text"] = stored.winner.config.text();
  json regret = nullptr;
  if (stored.regret) {
    regret = {{"neighbour", stored.regret->neighbour},
              {"ratio", json_number(stored.regret->ratio)},
              {"source", to_string(stored.regret->source)}};
  }
  return {{"problem", stored.problem.key()},
          {"device", stored.device.name},
          {"device_id", stored.device_id},
          {"device_fingerprint", stored.device.fingerprint()},
          {"driver", stored.provenance.driver},
          {"compiler", stored.provenance.compiler},
          {"template_key", stored.provenance.template_key},
          {"greta_version", stored.provenance.greta_version},
          {"date", stored.provenance.started_utc},
          {"regret", regret},
          {"winner", winner}};
}

json report_json(const SessionResult& result, const std::string& database) {
  json object{{"format", "greta-tune 1"},
              {"greta_version", version()},
              {"problem", problem_json(result)},
              {"device", to_json(result.device)},
              {"outcome", result.interrupted ? "interrupted"
                          : result.winner    ? "done"
                                             : "no winner"},
              {"winner", nullptr},
              {"default_config", to_json(result.default_config)},
              {"naive", nullptr},
              {"stand_in", nullptr},
              {"trials", trial_counts(result)},
              {"space", {{"valid", result.space_count}, {"cartesian", result.cartesian_size}}},
              {"ceilings", json::object()},
              {"notes", result.notes},
              {"time", time_json(result.time)},
              {"database", database}};
  for (const auto& ceiling : result.ceilings) object["ceilings"][ceiling.kind] = ceiling.value;
  if (result.winner) {
    object["winner"] = to_json(*result.winner);
    object["winner"]["config_text"] = result.winner->config.text();
    object["winner"]["tflops"] = result.work.flops / result.winner->measurement.median_us / 1e6;
    object["winner"]["gbps"] = result.work.bytes / result.winner->measurement.median_us / 1e3;
  }
  if (result.naive) object["naive"] = to_json(*result.naive);
  if (result.stand_in) {
    object["stand_in"] = {{"key", result.stand_in->problem.key()},
                          {"estimated_launch_s", result.stand_in->estimated_s}};
  }
  return object;
}

json contest_json(const std::vector<const SessionResult*>& sessions, const ContestResult& contest) {
  const DeviceInfo& best = sessions[contest.fastest]->device;
  json others = json::array();
  for (const auto& [entrant, comparison] : contest.others) {
    const DeviceInfo& device = sessions[entrant]->device;
    others.push_back({{"device", device.id()},
                      {"same_card", same_card(best, device)},
                      {"ratio", json_number(comparison.ratio)},
                      {"low", json_number(comparison.low)},
                      {"high", json_number(comparison.high)},
                      {"confidence", comparison.confidence},
                      {"turns", comparison.faster_us.size()},
                      {"sure", comparison.sure()}});
  }
  return {{"problem", sessions.front()->problem.key()},
          {"fastest", best.id()},
          {"sure", contest.sure()},
          {"others", others},
          {"notes", contest.notes}};
}

std::string csv_header() {
  return "op,dtype,out_dtype,problem,attributes,backend,device,config,origin,status,us,low_us,"
         "high_us,p99_us,spread_pct,tflops,gbps,roofline,error,bound,speedup,speedup_low,"
         "speedup_high,cache,samples,driver,compiler,greta_version,date\n";
}

std::string csv_rows(const SessionResult& result, bool cold, const std::string& date) {
  const CsvOrigin origin{
      result.problem,
      result.device,
      {std::string(version()), "", result.device.driver, result.device.compiler, date},
      cold};
  std::string rows;
  for (const auto& trial : result.trials) rows += csv_row(origin, trial_row(result, trial));
  if (!result.winner) return rows;
  return rows + certified_rows(origin, result.work, *result.winner, result.default_config.text());
}

std::string csv_rows(const StoredWinner& stored) {
  return certified_rows({stored.problem, stored.device, stored.provenance, stored.winner.cold},
                        work_of(stored.problem), stored.winner,
                        stored.winner.is_default ? stored.winner.config.text() : "");
}

}  // namespace greta
