#include "db/sqlite/rows.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "db/json.hpp"
#include "db/sqlite/checksums.hpp"
#include "db/sqlite/columns.hpp"
#include "db/values.hpp"
#include "runtime/device/utc.hpp"

namespace greta {
namespace {

/// Runs a statement that returns one row with one number.
std::int64_t fetch_id(SQLite::Statement& statement) {
  statement.executeStep();
  const std::int64_t id = statement.getColumn(0).getInt64();
  statement.reset();
  return id;
}

/// The same for a row that is new or changed, which gets its checksum.
std::int64_t sealed_id(SQLite::Database& database, const std::string& table,
                       SQLite::Statement& statement) {
  const auto id = fetch_id(statement);
  seal(database, table, fmt::format("id = {}", id));
  return id;
}

void bind_device(SQLite::Statement& insert, const DeviceInfo& device) {
  insert.bind(":fingerprint", device.fingerprint());
  insert.bind(":name", device.name);
  insert.bind(":driver", device.driver);
  insert.bind(":info", to_json(device).dump());
}

}  // namespace

std::int64_t put_device(SQLite::Database& database, const DeviceInfo& device) {
  SQLite::Statement insert(database, R"(
    INSERT INTO devices (fingerprint, name, driver, info, first_seen_utc, last_seen_utc)
    VALUES (:fingerprint, :name, :driver, :info, :now, :now)
    ON CONFLICT (fingerprint) DO UPDATE SET name = excluded.name, driver = excluded.driver,
      info = excluded.info, last_seen_utc = excluded.last_seen_utc
    RETURNING id)");
  bind_device(insert, device);
  insert.bind(":now", utc_now());
  return sealed_id(database, "devices", insert);
}

void put_device(SQLite::Database& database, const StoredDevice& device) {
  SQLite::Statement insert(database, R"(
    INSERT INTO devices (fingerprint, name, driver, info, first_seen_utc, last_seen_utc)
    VALUES (:fingerprint, :name, :driver, :info, :first_seen, :last_seen)
    ON CONFLICT (fingerprint) DO UPDATE SET name = excluded.name, driver = excluded.driver,
      info = excluded.info, first_seen_utc = excluded.first_seen_utc,
      last_seen_utc = excluded.last_seen_utc
    RETURNING id)");
  bind_device(insert, device.info);
  insert.bind(":first_seen", device.first_seen_utc);
  insert.bind(":last_seen", device.last_seen_utc);
  sealed_id(database, "devices", insert);
}

std::int64_t put_problem(SQLite::Database& database, const Problem& problem) {
  const auto key = problem.key();
  SQLite::Statement insert(database, R"(
    INSERT INTO problems (key, op, dtype, out_dtype, dims)
    VALUES (:key, :op, :dtype, :out_dtype, :dims) ON CONFLICT (key) DO NOTHING RETURNING id)");
  insert.bind(":key", key);
  insert.bind(":op", problem.op);
  insert.bind(":dtype", std::string(to_string(problem.dtype)));
  insert.bind(":out_dtype", std::string(to_string(problem.out_dtype)));
  insert.bind(":dims", problem.dims_text());
  if (insert.executeStep()) {
    insert.reset();
    seal(database, "problems", "id = last_insert_rowid()");
  }
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
  return sealed_id(database, "sessions", insert);
}

void finish_session(SQLite::Database& database, std::int64_t session, const std::string& outcome) {
  SQLite::Statement update(database, R"(
    UPDATE sessions SET outcome = :outcome, ended_utc = :now WHERE id = :session)");
  update.bind(":outcome", outcome);
  update.bind(":now", utc_now());
  execute_for_session(update, session);
  seal(database, "sessions", fmt::format("id = {}", session));
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
  insert.bind(":cold", trial.measurement.cold);
  insert.bind(":raced", trial.measurement.raced);
  insert.bind(":content_keys", trial.content_keys);
  insert.bind(":kernels", to_json(trial.kernels).dump());
  insert.bind(":compile_s", trial.compile_s);
  insert.bind(":verify_s", trial.verify_s);
  insert.bind(":measure_s", trial.measure_s);
  insert.bind(":now", utc_now());
  execute_for_session(insert, session);
  seal(database, "trials", "id = last_insert_rowid()");
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
  trial.verdict = read_verdict(row);
  trial.measurement = read_measurement(row);
  trial.measurement.cold = boolean(row, "cold");
  trial.measurement.raced = boolean(row, "raced");
  trial.problem_key = text(row, "problem_key");
  trial.content_keys = text(row, "content_keys");
  trial.kernels = kernels_from_json(json(row, "kernels"));
  trial.compile_s = real(row, "compile_s");
  trial.verify_s = real(row, "verify_s");
  trial.measure_s = real(row, "measure_s");
  trial.recorded_utc = text(row, "recorded_utc");
  return trial;
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
  seal(database, "comparisons",
       fmt::format("faster = {} AND slower = {}", comparison.faster, comparison.slower));
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
  seal(database, "ceilings", "checksum IS NULL");
}

const char* const select_ceilings = R"(
    SELECT c.* FROM ceilings c JOIN devices d ON d.id = c.device
    WHERE d.fingerprint = :fingerprint ORDER BY c.kind)";

Ceiling read_ceiling(SQLite::Statement& row) {
  return {text(row, "kind"), real(row, "value"), real(row, "spread_percent"), text(row, "driver"),
          text(row, "measured_utc")};
}

void put_unsafe(SQLite::Database& database, std::int64_t device, const UnsafePart& part) {
  SQLite::Statement insert(database, R"(
    INSERT OR REPLACE INTO unsafe (device, driver, health_check, status, message, recorded_utc)
    VALUES (:device, :driver, :health_check, :status, :message, :recorded_utc))");
  insert.bind(":device", device);
  insert.bind(":driver", part.driver);
  insert.bind(":health_check", part.check);
  insert.bind(":status", part.status);
  insert.bind(":message", part.message);
  insert.bind(":recorded_utc", part.recorded_utc);
  insert.exec();
  seal(database, "unsafe", "checksum IS NULL");
}

std::vector<UnsafePart> read_unsafe_parts(SQLite::Database& database,
                                          const std::string& fingerprint) {
  SQLite::Statement select(database, R"(
    SELECT u.* FROM unsafe u JOIN devices d ON d.id = u.device
    WHERE d.fingerprint = :fingerprint ORDER BY u.driver, u.health_check)");
  select.bind(":fingerprint", fingerprint);
  std::vector<UnsafePart> parts;
  while (select.executeStep()) {
    parts.push_back({text(select, "health_check"), text(select, "status"), text(select, "message"),
                     text(select, "driver"), text(select, "recorded_utc")});
  }
  return parts;
}

std::vector<UnsafePart> read_unsafe_parts(SQLite::Database& database, const DeviceInfo& device) {
  auto parts = read_unsafe_parts(database, device.fingerprint());
  std::erase_if(parts, [&](const UnsafePart& part) { return part.driver != device.driver; });
  return parts;
}

const char* const select_sessions = R"(
    SELECT s.*, p.key, d.fingerprint,
      (SELECT count(*) FROM trials t WHERE t.session = s.id) AS trials
    FROM sessions s JOIN problems p ON p.id = s.problem JOIN devices d ON d.id = s.device
    ORDER BY s.id)";

StoredSession read_session(SQLite::Statement& row) {
  StoredSession session;
  session.id = row.getColumn("id").getInt64();
  session.problem = Problem::parse(text(row, "key")).value();
  session.device_fingerprint = text(row, "fingerprint");
  session.device_id = text(row, "opened_as");
  session.provenance = {text(row, "greta_version"), text(row, "template_key"), text(row, "driver"),
                        text(row, "compiler"), text(row, "started_utc")};
  session.strategy = text(row, "strategy");
  session.budget = text(row, "budget");
  session.cold = boolean(row, "cold");
  if (!row.getColumn("outcome").isNull()) session.outcome = text(row, "outcome");
  session.trials = row.getColumn("trials").getInt64();
  return session;
}

void put_peer(SQLite::Database& database, const Peer& peer) {
  SQLite::Statement insert(database, R"(
    INSERT OR REPLACE INTO peers (problem, library, circumstances, solution, us, imported_utc)
    VALUES (:problem, :library, :circumstances, :solution, :us, :imported_utc))");
  insert.bind(":problem", peer.problem.key());
  insert.bind(":library", peer.library);
  insert.bind(":circumstances", peer.circumstances);
  insert.bind(":solution", peer.solution);
  insert.bind(":us", peer.us);
  insert.bind(":imported_utc", peer.imported_utc);
  insert.exec();
}

const char* const select_peers = "SELECT * FROM peers ORDER BY problem, library, circumstances";

Peer read_peer(SQLite::Statement& row) {
  return {Problem::parse(text(row, "problem")).value(),
          text(row, "library"),
          text(row, "circumstances"),
          text(row, "solution"),
          real(row, "us"),
          text(row, "imported_utc")};
}

const char* const select_devices = "SELECT * FROM devices ORDER BY name, id";

StoredDevice read_device(SQLite::Statement& row) {
  return {device_from_json(json(row, "info")), text(row, "first_seen_utc"),
          text(row, "last_seen_utc")};
}

}  // namespace greta
