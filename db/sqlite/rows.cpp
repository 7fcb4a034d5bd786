#include "db/sqlite/rows.hpp"

#include <fmt/format.h>

#include <limits>
#include <string>
#include <vector>

#include "db/json.hpp"
#include "db/values.hpp"
#include "runtime/device/utc.hpp"

namespace greta {
namespace {

/// NULL stands for NaN: SQLite stores no NaN.
double real(SQLite::Statement& row, const char* name) {
  const auto column = row.getColumn(name);
  return column.isNull() ? std::numeric_limits<double>::quiet_NaN() : column.getDouble();
}

std::string text(SQLite::Statement& row, const char* name) {
  return row.getColumn(name).getString();
}

bool boolean(SQLite::Statement& row, const char* name) {
  return row.getColumn(name).getInt() != 0;
}

nlohmann::json json(SQLite::Statement& row, const char* name) {
  auto value = nlohmann::json::parse(text(row, name), nullptr, false);
  if (value.is_discarded()) throw Error(fmt::format("column {} holds no JSON", name));
  return value;
}

/// The inverse of the "ties" of a winner in JSON.
std::vector<Tie> ties_from_json(const nlohmann::json& list) {
  std::vector<Tie> ties;
  if (!list.is_array()) throw Error("ties: not an array");
  for (const auto& tie : list) {
    if (!tie.is_object() || !tie.contains("config") || !tie.contains("ratio_to_winner")) {
      throw Error("ties: not a list of config and ratio_to_winner");
    }
    ties.push_back({config_from_json(tie["config"]),
                    number_from_json(tie["ratio_to_winner"], "ties: ratio_to_winner")});
  }
  return ties;
}

/// Runs a statement that returns one row with one number.
std::int64_t fetch_id(SQLite::Statement& statement) {
  statement.executeStep();
  const std::int64_t id = statement.getColumn(0).getInt64();
  statement.reset();
  return id;
}

/// Runs a statement that writes one row for a session, if there is such a session.
void execute_for_session(SQLite::Statement& statement, std::int64_t session) {
  statement.bind(":session", session);
  if (statement.exec() == 0) throw Error(fmt::format("there is no session {}", session));
}

void bind_verdict(SQLite::Statement& insert, const Verdict& verdict) {
  insert.bind(":passed", verdict.passed);
  insert.bind(":error", verdict.error);
  insert.bind(":bound", verdict.bound);
  insert.bind(":method", verdict.method);
  insert.bind(":detail", verdict.detail);
}

void bind_median(SQLite::Statement& insert, const Measurement& measurement) {
  insert.bind(":median_us", measurement.median_us);
  insert.bind(":low_us", measurement.low_us);
  insert.bind(":high_us", measurement.high_us);
}

void bind_measurement(SQLite::Statement& insert, const Measurement& measurement) {
  insert.bind(":samples_us", json_numbers(measurement.samples_us).dump());
  bind_median(insert, measurement);
  insert.bind(":p99_us", measurement.p99_us);
  insert.bind(":cold", measurement.cold);
  insert.bind(":raced", measurement.raced);
  insert.bind(":batch", measurement.batch);
  insert.bind(":dropped", measurement.dropped);
  insert.bind(":flush_bytes", static_cast<std::int64_t>(measurement.flush_bytes));
  insert.bind(":clocks", measurement.clocks);
}

Measurement read_measurement(SQLite::Statement& row) {
  Measurement measurement;
  measurement.samples_us = numbers_from_json(json(row, "samples_us"), "samples_us");
  measurement.median_us = real(row, "median_us");
  measurement.low_us = real(row, "low_us");
  measurement.high_us = real(row, "high_us");
  measurement.p99_us = real(row, "p99_us");
  measurement.cold = boolean(row, "cold");
  measurement.raced = boolean(row, "raced");
  measurement.batch = row.getColumn("batch").getInt();
  measurement.dropped = row.getColumn("dropped").getInt();
  measurement.flush_bytes = static_cast<std::uint64_t>(row.getColumn("flush_bytes").getInt64());
  measurement.clocks = text(row, "clocks");
  return measurement;
}

std::string select_winners(const std::string& condition) {
  return R"(
    SELECT w.*, p.key, d.info, s.opened_as, s.greta_version, s.template_key, s.driver, s.compiler,
      s.started_utc
    FROM winners w JOIN devices d ON d.id = w.device JOIN problems p ON p.id = w.problem
      JOIN sessions s ON s.id = w.session )" +
         condition;
}

}  // namespace

std::int64_t put_device(SQLite::Database& database, const DeviceInfo& device) {
  SQLite::Statement insert(database, R"(
    INSERT INTO devices (fingerprint, name, driver, info, first_seen_utc, last_seen_utc)
    VALUES (:fingerprint, :name, :driver, :info, :now, :now)
    ON CONFLICT (fingerprint) DO UPDATE SET name = excluded.name, driver = excluded.driver,
      info = excluded.info, last_seen_utc = excluded.last_seen_utc
    RETURNING id)");
  insert.bind(":fingerprint", device.fingerprint());
  insert.bind(":name", device.name);
  insert.bind(":driver", device.driver);
  insert.bind(":info", to_json(device).dump());
  insert.bind(":now", utc_now());
  return fetch_id(insert);
}

std::int64_t put_problem(SQLite::Database& database, const Problem& problem) {
  const auto key = problem.key();
  SQLite::Statement insert(database, R"(
    INSERT INTO problems (key, op, dtype, out_dtype, dims)
    VALUES (:key, :op, :dtype, :out_dtype, :dims) ON CONFLICT (key) DO NOTHING)");
  insert.bind(":key", key);
  insert.bind(":op", problem.op);
  insert.bind(":dtype", std::string(to_string(problem.dtype)));
  insert.bind(":out_dtype", std::string(to_string(problem.out_dtype)));
  insert.bind(":dims", problem.dims_text());
  insert.exec();
  SQLite::Statement select(database, "SELECT id FROM problems WHERE key = :key");
  select.bind(":key", key);
  return fetch_id(select);
}

std::int64_t insert_session(SQLite::Database& database, const SessionRecord& session) {
  SQLite::Statement insert(database, R"(
    INSERT INTO sessions (device, problem, opened_as, greta_version, template_key, driver, compiler,
      strategy, budget, seed, cold, command, started_utc)
    VALUES (:device, :problem, :opened_as, :greta_version, :template_key, :driver, :compiler,
      :strategy, :budget, :seed, :cold, :command, :started_utc)
    RETURNING id)");
  insert.bind(":device", put_device(database, session.device));
  insert.bind(":problem", put_problem(database, session.problem));
  insert.bind(":opened_as", session.device.id());
  insert.bind(":greta_version", session.provenance.greta_version);
  insert.bind(":template_key", session.provenance.template_key);
  insert.bind(":driver", session.provenance.driver);
  insert.bind(":compiler", session.provenance.compiler);
  insert.bind(":strategy", session.strategy);
  insert.bind(":budget", session.budget);
  insert.bind(":seed", std::to_string(session.seed));
  insert.bind(":cold", session.cold);
  insert.bind(":command", session.command);
  insert.bind(":started_utc", session.provenance.started_utc);
  return fetch_id(insert);
}

void finish_session(SQLite::Database& database, std::int64_t session, const std::string& outcome) {
  SQLite::Statement update(database, R"(
    UPDATE sessions SET outcome = :outcome, ended_utc = :now WHERE id = :session)");
  update.bind(":outcome", outcome);
  update.bind(":now", utc_now());
  execute_for_session(update, session);
}

void insert_trial(SQLite::Database& database, std::int64_t session, const Trial& trial) {
  SQLite::Statement insert(database, R"(
    INSERT INTO trials (session, stand_in, config, variant, status, message, log, passed, error,
      bound, method, detail, samples_us, median_us, low_us, high_us, p99_us, cold, raced, batch,
      dropped, flush_bytes, clocks, content_keys, kernels, compile_s, verify_s, measure_s,
      recorded_utc)
    SELECT s.id, nullif(:problem_key, p.key), :config, :variant, :status, :message, :log, :passed,
      :error, :bound, :method, :detail, :samples_us, :median_us, :low_us, :high_us, :p99_us, :cold,
      :raced, :batch, :dropped, :flush_bytes, :clocks, :content_keys, :kernels, :compile_s,
      :verify_s, :measure_s, :now
    FROM sessions s JOIN problems p ON p.id = s.problem WHERE s.id = :session)");
  insert.bind(":problem_key", trial.problem_key);
  insert.bind(":config", trial.config.text());
  insert.bind(":variant", trial.config.variant);
  insert.bind(":status", std::string(status_text(trial.failure)));
  insert.bind(":message", trial.message);
  insert.bind(":log", trial.log);
  bind_verdict(insert, trial.verdict);
  bind_measurement(insert, trial.measurement);
  insert.bind(":content_keys", trial.content_keys);
  insert.bind(":kernels", to_json(trial.kernels).dump());
  insert.bind(":compile_s", trial.compile_s);
  insert.bind(":verify_s", trial.verify_s);
  insert.bind(":measure_s", trial.measure_s);
  insert.bind(":now", utc_now());
  execute_for_session(insert, session);
}

const char* const select_trials = R"(
    SELECT t.*, coalesce(t.stand_in, p.key) AS problem_key
    FROM trials t JOIN sessions s ON s.id = t.session JOIN problems p ON p.id = s.problem
    WHERE t.session = :session ORDER BY t.id)";

Trial read_trial(SQLite::Statement& row) {
  Trial trial;
  trial.config = config_from_text(text(row, "config"));
  trial.failure = status_from_text(text(row, "status"));
  trial.message = text(row, "message");
  trial.log = text(row, "log");
  trial.verdict = {boolean(row, "passed"), real(row, "error"), real(row, "bound"),
                   text(row, "method"), text(row, "detail")};
  trial.measurement = read_measurement(row);
  trial.problem_key = text(row, "problem_key");
  trial.content_keys = text(row, "content_keys");
  trial.kernels = kernels_from_json(json(row, "kernels"));
  trial.compile_s = real(row, "compile_s");
  trial.verify_s = real(row, "verify_s");
  trial.measure_s = real(row, "measure_s");
  return trial;
}

void put_winner(SQLite::Database& database, std::int64_t session, const Winner& winner) {
  SQLite::Statement insert(database, R"(
    INSERT OR REPLACE INTO winners (device, problem, cold, session, config, is_default, median_us,
      low_us, high_us, default_us, speedup, speedup_low, speedup_high, confidence, rounds,
      measurement, default_samples_us, roofline, verdict, kernels, ties, recorded_utc)
    SELECT device, problem, :cold, id, :config, :is_default, :median_us, :low_us, :high_us,
      :default_us, :speedup, :speedup_low, :speedup_high, :confidence, :rounds,
      :measurement, :default_samples_us, :roofline, :verdict, :kernels, :ties, :now
    FROM sessions WHERE id = :session)");
  insert.bind(":cold", winner.cold);
  insert.bind(":config", winner.config.text());
  insert.bind(":is_default", winner.is_default);
  bind_median(insert, winner.measurement);
  insert.bind(":default_us", winner.default_us);
  insert.bind(":speedup", winner.speedup);
  insert.bind(":speedup_low", winner.speedup_low);
  insert.bind(":speedup_high", winner.speedup_high);
  insert.bind(":confidence", winner.confidence);
  insert.bind(":rounds", winner.rounds);
  insert.bind(":measurement", to_json(winner.measurement).dump());
  insert.bind(":default_samples_us", json_numbers(winner.default_samples_us).dump());
  insert.bind(":roofline", winner.roofline);
  insert.bind(":verdict", to_json(winner.verdict).dump());
  insert.bind(":kernels", to_json(winner.kernels).dump());
  insert.bind(":ties", to_json(winner)["ties"].dump());
  insert.bind(":now", utc_now());
  execute_for_session(insert, session);
}

const std::string& select_winner() {
  static const std::string query =
      select_winners("WHERE d.fingerprint = :fingerprint AND p.key = :key AND w.cold = :cold");
  return query;
}

const std::string& select_all_winners() {
  static const std::string query = select_winners("ORDER BY p.op, p.id, d.name, d.id, w.cold DESC");
  return query;
}

const std::string& select_problem_winners() {
  static const std::string query =
      select_winners("WHERE p.key = :key AND w.cold = :cold ORDER BY d.id");
  return query;
}

StoredWinner read_winner(SQLite::Statement& row) {
  StoredWinner stored;
  stored.problem = Problem::parse(text(row, "key")).value();
  stored.device = device_from_json(json(row, "info"));
  stored.device_id = text(row, "opened_as");
  stored.session = row.getColumn("session").getInt64();
  stored.provenance = {text(row, "greta_version"), text(row, "template_key"), text(row, "driver"),
                       text(row, "compiler"), text(row, "started_utc")};
  Winner& winner = stored.winner;
  winner.config = config_from_text(text(row, "config"));
  winner.is_default = boolean(row, "is_default");
  winner.default_us = real(row, "default_us");
  winner.speedup = real(row, "speedup");
  winner.speedup_low = real(row, "speedup_low");
  winner.speedup_high = real(row, "speedup_high");
  winner.confidence = real(row, "confidence");
  winner.rounds = row.getColumn("rounds").getInt();
  winner.measurement = measurement_from_json(json(row, "measurement"));
  winner.default_samples_us =
      numbers_from_json(json(row, "default_samples_us"), "default_samples_us");
  winner.roofline = real(row, "roofline");
  winner.verdict = verdict_from_json(json(row, "verdict"));
  winner.kernels = kernels_from_json(json(row, "kernels"));
  winner.cold = boolean(row, "cold");
  winner.ties = ties_from_json(json(row, "ties"));
  return stored;
}

void put_comparison(SQLite::Database& database, const Comparison& comparison) {
  SQLite::Statement reverse(database,
                            "DELETE FROM comparisons WHERE faster = :slower AND slower = :faster");
  SQLite::Statement insert(database, R"(
    INSERT OR REPLACE INTO comparisons (faster, slower, ratio, low, high, confidence, faster_us,
      slower_us, recorded_utc)
    SELECT f.id, s.id, :ratio, :low, :high, :confidence, :faster_us, :slower_us, :now
    FROM sessions f JOIN sessions s ON s.problem = f.problem AND s.cold = f.cold
    WHERE f.id = :faster AND s.id = :slower)");
  for (SQLite::Statement* const statement : {&reverse, &insert}) {
    statement->bind(":faster", comparison.faster);
    statement->bind(":slower", comparison.slower);
  }
  insert.bind(":ratio", comparison.ratio);
  insert.bind(":low", comparison.low);
  insert.bind(":high", comparison.high);
  insert.bind(":confidence", comparison.confidence);
  insert.bind(":faster_us", json_numbers(comparison.faster_us).dump());
  insert.bind(":slower_us", json_numbers(comparison.slower_us).dump());
  insert.bind(":now", utc_now());
  reverse.exec();
  if (insert.exec() == 0) {
    throw Error(fmt::format("there are no sessions {} and {} of one problem", comparison.faster,
                            comparison.slower));
  }
}

const char* const select_comparisons = R"(
    SELECT * FROM comparisons WHERE faster = :session
    UNION ALL SELECT * FROM comparisons WHERE slower = :session)";

Comparison read_comparison(SQLite::Statement& row) {
  return {row.getColumn("faster").getInt64(),
          row.getColumn("slower").getInt64(),
          real(row, "ratio"),
          real(row, "low"),
          real(row, "high"),
          real(row, "confidence"),
          numbers_from_json(json(row, "faster_us"), "faster_us"),
          numbers_from_json(json(row, "slower_us"), "slower_us")};
}

void put_ceiling(SQLite::Database& database, std::int64_t device, const Ceiling& ceiling) {
  SQLite::Statement insert(database, R"(
    INSERT OR REPLACE INTO ceilings (device, kind, value, spread_percent, driver, measured_utc)
    VALUES (:device, :kind, :value, :spread_percent, :driver, :measured_utc))");
  insert.bind(":device", device);
  insert.bind(":kind", ceiling.kind);
  insert.bind(":value", ceiling.value);
  insert.bind(":spread_percent", ceiling.spread_percent);
  insert.bind(":driver", ceiling.driver);
  insert.bind(":measured_utc", ceiling.measured_utc);
  insert.exec();
}

const char* const select_ceilings = R"(
    SELECT c.* FROM ceilings c JOIN devices d ON d.id = c.device
    WHERE d.fingerprint = :fingerprint ORDER BY c.kind)";

Ceiling read_ceiling(SQLite::Statement& row) {
  return {text(row, "kind"), real(row, "value"), real(row, "spread_percent"), text(row, "driver"),
          text(row, "measured_utc")};
}

}  // namespace greta
