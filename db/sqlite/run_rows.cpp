#include "db/sqlite/run_rows.hpp"

#include <SQLiteCpp/VariadicBind.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "db/enum_text.hpp"
#include "db/sqlite/columns.hpp"
#include "db/sqlite/device_rows.hpp"
#include "db/sqlite/guard.hpp"
#include "db/sqlite/winner_rows.hpp"
#include "runtime/device/system/utc.hpp"

namespace greta::db {
namespace {

std::string plan_json(const SearchPlan& plan) {
  auto first = nlohmann::json::array();
  for (const Config& config : plan.first) first.push_back(config.text());
  return nlohmann::json{{"first", first},
                        {"stand_in", plan.stand_in},
                        {"stand_in_launch_s", json_number(plan.stand_in_launch_s)}}
      .dump();
}

SearchPlan plan_from_json(const nlohmann::json& in) {
  try {
    SearchPlan plan;
    for (const auto& config : in.at("first"))
      plan.first.push_back(config_from_text(config.get<std::string>()));
    plan.stand_in = in.at("stand_in").get<std::string>();
    plan.stand_in_launch_s = number_from_json(in.at("stand_in_launch_s"), "stand_in_launch_s");
    return plan;
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("the plan of a session can't be read: {}", error.what()));
  }
}

void bind_question(SQLite::Database& database, SQLite::Statement& statement,
                   const Question& question) {
  statement.bind(":problem", question.problem_key);
  statement.bind(":device", device_row(database, question.device_fingerprint));
  statement.bind(":cold", question.cold);
}

}  // namespace

std::int64_t insert_run(SQLite::Database& database, const RunRecord& run) {
  const auto id = next_id(database, "runs");
  SealedInsert insert(database, "runs", Existing::refused,
                      {"id", "request", "seed", "command", "started_utc"});
  insert.row().bind(":id", id);
  insert.row().bind(":request", run.request);
  insert.row().bind(":seed", std::to_string(run.seed));
  insert.row().bind(":command", run.command);
  insert.row().bind(":started_utc", run.started_utc);
  insert.run();
  return id;
}

void finish_run(SQLite::Database& database, std::int64_t run) {
  SQLite::Statement update(database, sealed_update(database, "runs", {"ended_utc"}, "id = :run"));
  update.bind(":ended_utc", utc_now());
  update.bind(":run", run);
  update.exec();
}

std::optional<UnfinishedRun> find_unfinished_run(SQLite::Database& database,
                                                 const std::string& request,
                                                 std::optional<std::uint64_t> seed) {
  SQLite::Statement select(database, R"(
    SELECT * FROM runs WHERE request = :request AND (:seed IS NULL OR seed = :seed)
    ORDER BY id DESC LIMIT 1)");
  select.bind(":request", request);
  if (seed) select.bind(":seed", std::to_string(*seed));
  if (!select.executeStep() || !select.getColumn("ended_utc").isNull()) return std::nullopt;
  return UnfinishedRun{select.getColumn("id").getInt64(), std::stoull(text(select, "seed")),
                       text(select, "started_utc")};
}

std::optional<RunSession> find_session_of_run(SQLite::Database& database, std::int64_t run,
                                              const std::string& device_fingerprint,
                                              const std::string& problem_key, bool cold) {
  SQLite::Statement select(database, R"(
    SELECT s.* FROM sessions s JOIN problems p ON p.id = s.problem JOIN devices d ON d.id = s.device
    WHERE s.run = :run AND d.fingerprint = :fingerprint AND p.key = :key AND s.cold = :cold
    ORDER BY s.id DESC LIMIT 1)");
  select.bind(":run", run);
  select.bind(":fingerprint", device_fingerprint);
  select.bind(":key", problem_key);
  select.bind(":cold", cold);
  if (!select.executeStep()) return std::nullopt;
  RunSession session;
  session.id = select.getColumn("id").getInt64();
  if (!select.getColumn("outcome").isNull()) session.outcome = text(select, "outcome");
  if (!select.getColumn("plan").isNull()) session.plan = plan_from_json(json(select, "plan"));
  return session;
}

void reopen_session(SQLite::Database& database, std::int64_t session) {
  SQLite::Statement update(
      database, sealed_update(database, "sessions", {"outcome", "ended_utc"}, "id = :session"));
  execute_for_session(update, session);  // unbound values are NULL
}

void put_plan(SQLite::Database& database, std::int64_t session, const SearchPlan& plan) {
  SQLite::Statement update(database,
                           sealed_update(database, "sessions", {"plan"}, "id = :session"));
  update.bind(":plan", plan_json(plan));
  execute_for_session(update, session);
}

void put_pin(SQLite::Database& database, const Question& question) {
  SealedInsert insert(database, "pins", Existing::replaced,
                      {"problem", "device", "cold", "pinned_utc"});
  bind_question(database, insert.row(), question);
  insert.row().bind(":pinned_utc", utc_now());
  insert.run();
}

bool remove_pin(SQLite::Database& database, const Question& question) {
  SQLite::Statement remove(
      database,
      "DELETE FROM main.pins WHERE problem = :problem AND device = :device AND cold = :cold");
  bind_question(database, remove, question);
  return remove.exec() > 0;
}

std::vector<Pin> read_pins(SQLite::Database& database) {
  SQLite::Statement select(database, R"(
    SELECT p.*, d.fingerprint FROM pins p JOIN devices d ON d.id = p.device
    ORDER BY p.problem, p.device, p.cold)");
  std::vector<Pin> pins;
  while (select.executeStep()) {
    pins.push_back({{text(select, "problem"), text(select, "fingerprint"), boolean(select, "cold")},
                    text(select, "pinned_utc")});
  }
  return pins;
}

std::optional<Config> pinned_config(SQLite::Database& database, const Question& question) {
  SQLite::Statement select(database, R"(
    SELECT 1 FROM pins p JOIN devices d ON d.id = p.device
    WHERE p.problem = :key AND d.fingerprint = :fingerprint AND p.cold = :cold)");
  select.bind(":key", question.problem_key);
  select.bind(":fingerprint", question.device_fingerprint);
  select.bind(":cold", question.cold);
  if (!select.executeStep()) return std::nullopt;
  const auto answers =
      read_winners(database, question.device_fingerprint, question.problem_key, question.cold);
  if (answers.empty()) return std::nullopt;  // the answer's row is damaged
  return answers.front().winner.config;
}

}  // namespace greta::db
