#include "db/sqlite/rows.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "db/enum_text.hpp"
#include "db/json.hpp"
#include "db/sqlite/columns.hpp"
#include "db/sqlite/device_rows.hpp"
#include "db/sqlite/guard.hpp"
#include "runtime/device/system/utc.hpp"

namespace greta::db {

std::int64_t put_problem(SQLite::Database& database, const Problem& problem) {
  const auto key = problem.key();
  SQLite::Statement find(database, "SELECT id FROM problems WHERE key = ?");
  find.bind(1, key);
  if (find.executeStep()) return find.getColumn(0).getInt64();
  set_aside(database, "problems", "key", "key = ?1", {key});
  const auto id = next_id(database, "problems");
  SealedInsert insert(database, "problems", Existing::refused,
                      {"id", "key", "op", "dtype", "out_dtype", "dims"});
  insert.row().bind(":id", id);
  insert.row().bind(":key", key);
  insert.row().bind(":op", problem.op);
  insert.row().bind(":dtype", std::string(to_string(problem.dtype)));
  insert.row().bind(":out_dtype", std::string(to_string(problem.out_dtype)));
  insert.row().bind(":dims", problem.dims_text());
  insert.run();
  return id;
}

std::int64_t insert_session(SQLite::Database& database, const SessionRecord& session) {
  const auto device = put_device(database, session.device);
  const auto problem = put_problem(database, session.problem);
  const auto id = next_id(database, "sessions");
  SealedInsert insert(database, "sessions", Existing::refused,
                      {"id", "device", "problem", "opened_as", "greta_version", "template_key",
                       "driver", "compiler", "strategy", "budget", "seed", "cold", "command",
                       "started_utc", "run", "objective"});
  auto& row = insert.row();
  row.bind(":id", id);
  row.bind(":device", device);
  row.bind(":problem", problem);
  row.bind(":opened_as", session.device.id());
  row.bind(":greta_version", session.provenance.greta_version);
  row.bind(":template_key", session.provenance.template_key);
  row.bind(":driver", session.provenance.driver);
  row.bind(":compiler", session.provenance.compiler);
  row.bind(":strategy", session.strategy);
  row.bind(":budget", session.budget);
  row.bind(":seed", std::to_string(session.seed));
  row.bind(":cold", session.cold);
  row.bind(":command", session.command);
  row.bind(":started_utc", session.provenance.started_utc);
  if (session.run != 0) row.bind(":run", session.run);
  if (session.for_energy) row.bind(":objective", std::string("energy"));
  insert.run();
  return id;
}

void finish_session(SQLite::Database& database, std::int64_t session, const std::string& outcome) {
  SQLite::Statement update(
      database, sealed_update(database, "sessions", {"outcome", "ended_utc"}, "id = :session"));
  update.bind(":outcome", outcome);
  update.bind(":ended_utc", utc_now());
  execute_for_session(update, session);
}

TrialWriter::TrialWriter(SQLite::Database& database)
    : problem_of_(database, R"(
    SELECT p.key FROM sessions s JOIN problems p ON p.id = s.problem WHERE s.id = ?)"),
      next_id_(database, select_next_id(database, "trials")),
      insert_(
          database, "trials", Existing::refused,
          {"id",           "session",    "stand_in",  "config",    "variant",     "status",
           "message",      "log",        "passed",    "error",     "bound",       "method",
           "detail",       "samples_us", "median_us", "low_us",    "high_us",     "p99_us",
           "cold",         "raced",      "batch",     "dropped",   "flush_bytes", "clocks",
           "content_keys", "kernels",    "compile_s", "verify_s",  "measure_s",   "recorded_utc",
           "card",         "phase",      "asks",      "elapsed_s", "watts",       "celsius",
           "throttled"}) {}

void TrialWriter::insert(std::int64_t session, const Trial& trial) {
  problem_of_.reset();
  problem_of_.bind(1, session);
  if (!problem_of_.executeStep()) refuse_session(session);
  const auto problem_key = problem_of_.getColumn(0).getString();
  problem_of_.reset();  // a statement that is not reset keeps the transaction open
  next_id_.executeStep();
  auto& row = insert_.row();
  row.bind(":id", next_id_.getColumn(0).getInt64());
  next_id_.reset();
  row.bind(":session", session);
  if (trial.problem_key != problem_key) row.bind(":stand_in", trial.problem_key);
  row.bind(":config", trial.config.text());
  row.bind(":variant", trial.config.variant);
  row.bind(":status", std::string(status_text(trial.failure)));
  row.bind(":message", trial.message);
  row.bind(":log", trial.log);
  bind_verdict(row, trial.verdict);
  bind_measurement(row, trial.measurement);
  row.bind(":cold", trial.measurement.cold);
  row.bind(":raced", trial.measurement.raced);
  row.bind(":content_keys", trial.content_keys);
  row.bind(":kernels", to_json(trial.kernels).dump());
  row.bind(":compile_s", trial.compile_s);
  row.bind(":verify_s", trial.verify_s);
  row.bind(":measure_s", trial.measure_s);
  row.bind(":recorded_utc", utc_now());
  if (!trial.card.empty()) row.bind(":card", trial.card);
  if (trial.phase) row.bind(":phase", std::string(to_string(*trial.phase)));
  if (trial.asks) row.bind(":asks", *trial.asks);
  row.bind(":elapsed_s", trial.elapsed_s);
  insert_.run();
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
  trial.card = text(row, "card");
  const auto phase = row.getColumn("phase"), asks = row.getColumn("asks");
  if (!phase.isNull()) trial.phase = trial_phase_from_text(phase.getString());
  if (!asks.isNull()) trial.asks = asks.getInt64();
  trial.elapsed_s = row.getColumn("elapsed_s").isNull() ? 0 : real(row, "elapsed_s");
  return trial;
}

// A configuration's place is its rank among those that were timed on the same problem: the
// session's own (stand_in is NULL) or a stand-in.
std::vector<Config> read_fastest_configs(SQLite::Database& database,
                                         const std::string& device_fingerprint,
                                         const std::string& problem_key, bool cold, int most) {
  SQLite::Statement select(database, R"(
    SELECT config FROM (
      SELECT config, stand_in IS NULL AS full_size,
        rank() OVER (PARTITION BY stand_in ORDER BY us) AS place
      FROM (
        SELECT t.config, t.stand_in, min(t.median_us) AS us
        FROM trials t JOIN sessions s ON s.id = t.session
          JOIN devices d ON d.id = s.device JOIN problems p ON p.id = s.problem
        WHERE d.fingerprint = :fingerprint AND p.key = :key AND s.cold = :cold
          AND t.status = 'ok' AND t.raced = 0 AND t.median_us > 0
        GROUP BY t.config, t.stand_in))
    GROUP BY config
    ORDER BY max(full_size) DESC, min(CASE WHEN full_size THEN place END), min(place), config
    LIMIT :most)");
  select.bind(":fingerprint", device_fingerprint);
  select.bind(":key", problem_key);
  select.bind(":cold", cold);
  select.bind(":most", most);
  std::vector<Config> configs;
  while (select.executeStep()) configs.push_back(config_from_text(select.getColumn(0).getText()));
  return configs;
}

void put_comparison(SQLite::Database& database, const Comparison& comparison) {
  SQLite::Statement sessions(database, R"(
    SELECT 1 FROM sessions f JOIN sessions s ON s.problem = f.problem AND s.cold = f.cold
    WHERE f.id = :faster AND s.id = :slower)");
  SQLite::Statement reverse(
      database, "DELETE FROM main.comparisons WHERE faster = :slower AND slower = :faster");
  SealedInsert insert(database, "comparisons", Existing::replaced,
                      {"faster", "slower", "ratio", "low", "high", "confidence", "faster_us",
                       "slower_us", "recorded_utc"});
  for (SQLite::Statement* const statement : {&sessions, &reverse, &insert.row()}) {
    statement->bind(":faster", comparison.faster);
    statement->bind(":slower", comparison.slower);
  }
  if (!sessions.executeStep()) {
    throw Error(fmt::format("there are no sessions {} and {} of one problem", comparison.faster,
                            comparison.slower));
  }
  insert.row().bind(":ratio", comparison.ratio);
  insert.row().bind(":low", comparison.low);
  insert.row().bind(":high", comparison.high);
  insert.row().bind(":confidence", comparison.confidence);
  insert.row().bind(":faster_us", json_numbers(comparison.faster_us).dump());
  insert.row().bind(":slower_us", json_numbers(comparison.slower_us).dump());
  insert.row().bind(":recorded_utc", utc_now());
  reverse.exec();
  insert.run();
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
  SealedInsert insert(
      database, "ceilings", Existing::replaced,
      {"device", "kind", "card", "value", "spread_percent", "driver", "measured_utc"});
  insert.row().bind(":device", device);
  insert.row().bind(":kind", ceiling.kind);
  insert.row().bind(":card", ceiling.card);
  insert.row().bind(":value", ceiling.value);
  insert.row().bind(":spread_percent", ceiling.spread_percent);
  insert.row().bind(":driver", ceiling.driver);
  insert.row().bind(":measured_utc", ceiling.measured_utc);
  insert.run();
}

const char* const select_ceilings = R"(
    SELECT c.* FROM ceilings c JOIN devices d ON d.id = c.device
    WHERE d.fingerprint = :fingerprint ORDER BY c.kind, c.measured_utc DESC, c.card)";

Ceiling read_ceiling(SQLite::Statement& row) {
  return {text(row, "kind"),   real(row, "value"),        real(row, "spread_percent"),
          text(row, "driver"), text(row, "measured_utc"), text(row, "card")};
}

void put_unsafe(SQLite::Database& database, std::int64_t device, const UnsafePart& part) {
  SealedInsert insert(
      database, "unsafe", Existing::replaced,
      {"device", "driver", "health_check", "card", "status", "message", "recorded_utc"});
  insert.row().bind(":device", device);
  insert.row().bind(":driver", part.driver);
  insert.row().bind(":health_check", part.check);
  insert.row().bind(":card", part.card);
  insert.row().bind(":status", part.status);
  insert.row().bind(":message", part.message);
  insert.row().bind(":recorded_utc", part.recorded_utc);
  insert.run();
}

std::vector<UnsafePart> read_unsafe_parts(SQLite::Database& database,
                                          const std::string& fingerprint) {
  SQLite::Statement select(database, R"(
    SELECT u.* FROM unsafe u JOIN devices d ON d.id = u.device
    WHERE d.fingerprint = :fingerprint ORDER BY u.driver, u.health_check, u.card)");
  select.bind(":fingerprint", fingerprint);
  std::vector<UnsafePart> parts;
  while (select.executeStep()) {
    parts.push_back({text(select, "health_check"), text(select, "status"), text(select, "message"),
                     text(select, "driver"), text(select, "recorded_utc"), text(select, "card")});
  }
  return parts;
}

std::vector<UnsafePart> read_unsafe_parts(SQLite::Database& database, const DeviceInfo& device) {
  auto parts = read_unsafe_parts(database, device.fingerprint());
  std::erase_if(parts, [&](const UnsafePart& part) {
    return part.driver != device.driver || part.card != device.card.uuid;
  });
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
  SealedInsert insert(database, "peers", Existing::replaced,
                      {"problem", "library", "circumstances", "solution", "us", "imported_utc"});
  insert.row().bind(":problem", peer.problem.key());
  insert.row().bind(":library", peer.library);
  insert.row().bind(":circumstances", peer.circumstances);
  insert.row().bind(":solution", peer.solution);
  insert.row().bind(":us", peer.us);
  insert.row().bind(":imported_utc", peer.imported_utc);
  insert.run();
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

}  // namespace greta::db
