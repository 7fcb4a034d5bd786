#include "db/sqlite/winner_rows.hpp"

#include <SQLiteCpp/VariadicBind.h>
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "db/enum_text.hpp"
#include "db/json.hpp"
#include "db/sqlite/columns.hpp"
#include "db/sqlite/device_rows.hpp"
#include "db/sqlite/run_rows.hpp"

namespace greta::db {
namespace {

std::string ties_json(const Winner& winner, ConfigForms* pack) {
  auto list = nlohmann::json::array();
  for (const auto& tie : winner.ties) {
    list.push_back({pack != nullptr ? pack->pack(tie.config, &winner.config) : tie.config.text(),
                    json_number(tie.ratio_to_winner)});
  }
  return list.dump();
}

std::vector<Tie> ties_from_json(const nlohmann::json& list, const ConfigForms& forms,
                                const Config& winner) {
  std::vector<Tie> ties;
  if (!list.is_array()) throw Error("ties: not an array");
  for (const auto& tie : list) {
    if (!tie.is_array() || tie.size() != 2 || !tie[0].is_string()) {
      throw Error("ties: not a list of [configuration, ratio]");
    }
    ties.push_back({forms.read(tie[0].get_ref<const std::string&>(), &winner),
                    number_from_json(tie[1], "ties: ratio")});
  }
  return ties;
}

/// Returns the id of a set of circumstances, or nothing if there is none.
std::optional<std::int64_t> find_circumstances(SQLite::Database& database,
                                               const std::string& fingerprint,
                                               const Provenance& provenance) {
  SQLite::Statement select(database, R"(
    SELECT c.id FROM circumstances c JOIN devices d ON d.id = c.device
    WHERE d.fingerprint = ? AND c.driver = ? AND c.compiler = ? AND c.template_key = ?)");
  SQLite::bind(select, fingerprint, provenance.driver, provenance.compiler,
               provenance.template_key);
  if (!select.executeStep()) return std::nullopt;
  return select.getColumn(0).getInt64();
}

}  // namespace

std::int64_t put_circumstances(SQLite::Database& database, const std::string& fingerprint,
                               const Provenance& provenance) {
  if (const auto known = find_circumstances(database, fingerprint, provenance)) return *known;
  const auto device = device_row(database, fingerprint);
  set_aside(
      database, "circumstances", "driver",
      "device = CAST(?1 AS INTEGER) AND driver = ?2 AND compiler = ?3 AND template_key = ?4",
      {std::to_string(device), provenance.driver, provenance.compiler, provenance.template_key});
  const auto id = next_id(database, "circumstances");
  SealedInsert insert(database, "circumstances", Existing::refused,
                      {"id", "device", "driver", "compiler", "template_key"});
  insert.row().bind(":id", id);
  insert.row().bind(":device", device);
  insert.row().bind(":driver", provenance.driver);
  insert.row().bind(":compiler", provenance.compiler);
  insert.row().bind(":template_key", provenance.template_key);
  insert.run();
  return id;
}

namespace {

const std::vector<std::string> winner_columns{
    "problem",     "circumstances", "cold",       "session",       "greta_version",
    "started_utc", "config",        "is_default", "median_us",     "low_us",
    "high_us",     "p99_us",        "batch",      "dropped",       "flush_bytes",
    "clocks",      "default_us",    "speedup",    "speedup_low",   "speedup_high",
    "confidence",  "rounds",        "roofline",   "passed",        "error",
    "bound",       "method",        "detail",     "ties",          "samples_us",
    "kernels",     "neighbour",     "regret",     "regret_source", "default_samples_us",
    "card",        "watts",         "celsius",    "throttled"};

void bind_winner(SQLite::Statement& insert, const Winner& winner, ConfigForms* pack) {
  insert.bind(":cold", winner.cold);
  insert.bind(":config", pack != nullptr ? pack->pack(winner.config) : winner.config.text());
  insert.bind(":is_default", winner.is_default);
  bind_measurement(insert, winner.measurement);
  insert.bind(":default_us", winner.default_us);
  insert.bind(":speedup", winner.speedup);
  insert.bind(":speedup_low", winner.speedup_low);
  insert.bind(":speedup_high", winner.speedup_high);
  insert.bind(":confidence", winner.confidence);
  insert.bind(":rounds", winner.rounds);
  insert.bind(":roofline", winner.roofline);
  bind_verdict(insert, winner.verdict);
  insert.bind(":ties", ties_json(winner, pack));
  insert.bind(":default_samples_us", json_numbers(winner.default_samples_us).dump());
  insert.bind(":kernels", to_json(winner.kernels).dump());
  if (!winner.card.empty()) {
    insert.bind(":card", pack != nullptr ? pack->share(winner.card) : winner.card);
  }
  if (pack == nullptr) return;
  insert.bind(":clocks", pack->share(winner.measurement.clocks));
  insert.bind(":method", pack->share(winner.verdict.method));
}

void bind_regret(SQLite::Statement& statement, const std::optional<Regret>& regret) {
  if (!regret) return;  // NULL
  statement.bind(":neighbour", regret->neighbour);
  statement.bind(":regret", regret->ratio);
  statement.bind(":regret_source", std::string(to_string(regret->source)));
}

/// Binds a result's key, circumstances and origin, and its regret if it has one.
void bind_result(SQLite::Database& database, SQLite::Statement& insert,
                 const StoredWinner& result) {
  insert.bind(":problem", result.problem.key());
  insert.bind(":circumstances",
              put_circumstances(database, result.device.fingerprint(), result.provenance));
  if (result.session != 0) insert.bind(":session", result.session);
  insert.bind(":greta_version", result.provenance.greta_version);
  insert.bind(":started_utc", result.provenance.started_utc);
  bind_regret(insert, result.regret);
}

// A date in the future is that of a clock that jumped: it says nothing of which result is later.
std::string select_winners(const std::string& condition) {
  return R"(
    SELECT w.*, c.device, c.driver, c.compiler, c.template_key, d.info,
      d.name AS device_name, s.opened_as
    FROM winners w JOIN circumstances c ON c.id = w.circumstances
      JOIN devices d ON d.id = c.device LEFT JOIN sessions s ON s.id = w.session )" +
         condition + R"(
    w.started_utc > strftime('%Y-%m-%dT%H:%M:%SZ', 'now'), w.started_utc DESC, w.session DESC,
    w.median_us, c.driver, c.compiler, c.template_key)";
}

bool same_question(const StoredWinner& a, const StoredWinner& b) {
  return a.problem == b.problem && a.winner.cold == b.winner.cold &&
         a.device.fingerprint() == b.device.fingerprint();
}

/// Puts results of the present driver and compiler first among those of each question: of
/// `present`, if there is one, then of the device as last seen. Puts those of a vendor's library
/// last. Otherwise, the order stays.
void put_present_first(std::vector<StoredWinner>& winners, const DeviceInfo* present) {
  const auto common = [](const StoredWinner& winner, const DeviceInfo& device) {
    return static_cast<int>(winner.provenance.driver == device.driver) +
           static_cast<int>(winner.provenance.compiler == device.compiler);
  };
  const auto of_present = [&](const StoredWinner& winner) {
    return std::tuple(!is_of_vendor(winner.winner),
                      present != nullptr ? common(winner, *present) : 0,
                      common(winner, winner.device));
  };
  for (auto first = winners.begin(); first != winners.end();) {
    const auto end = std::find_if(first + 1, winners.end(), [&](const StoredWinner& other) {
      return !same_question(*first, other);
    });
    std::stable_sort(first, end, [&](const StoredWinner& a, const StoredWinner& b) {
      return of_present(a) > of_present(b);
    });
    first = end;
  }
}

}  // namespace

StoredWinner origin_of(SQLite::Database& database, std::int64_t session) {
  SQLite::Statement select(database, R"(
    SELECT s.*, p.key, d.info FROM sessions s JOIN problems p ON p.id = s.problem
      JOIN devices d ON d.id = s.device WHERE s.id = :session)");
  select.bind(":session", session);
  if (!select.executeStep()) throw Error(fmt::format("there is no session {}", session));
  StoredWinner origin;
  origin.session = session;
  origin.problem = Problem::parse(text(select, "key")).value();
  origin.device = device_from_json(json(select, "info"));
  origin.provenance = {text(select, "greta_version"), text(select, "template_key"),
                       text(select, "driver"), text(select, "compiler"),
                       text(select, "started_utc")};
  return origin;
}

bool put_winner(SQLite::Database& database, std::int64_t session, const Winner& winner) {
  StoredWinner result = origin_of(database, session);
  result.winner = winner;
  return ResultWriter(database, false).write(result);
}

ResultWriter::ResultWriter(SQLite::Database& database, bool packed)
    : database_(database),
      insert_(database, "winners", Existing::replaced, winner_columns),
      forms_(database),
      packed_(packed) {}

bool ResultWriter::write(const StoredWinner& result) {
  const auto pinned = pinned_config(database_, question_of(result));
  if (pinned && *pinned != result.winner.config) return false;
  bind_winner(insert_.row(), result.winner, packed_ ? &forms_ : nullptr);
  bind_result(database_, insert_.row(), result);
  insert_.run();
  return true;
}

void put_regret(SQLite::Database& database, const StoredWinner& result) {
  const auto circumstances =
      find_circumstances(database, result.device.fingerprint(), result.provenance);
  SQLite::Statement update(
      database,
      sealed_update(database, "winners", {"neighbour", "regret", "regret_source"},
                    "problem = :problem AND circumstances = :circumstances AND cold = :cold"));
  bind_regret(update, result.regret);
  update.bind(":problem", result.problem.key());
  if (circumstances) update.bind(":circumstances", *circumstances);
  update.bind(":cold", result.winner.cold);
  if (update.exec() == 0) throw Error("there is no result of " + result.problem.key());
}

std::string select_trials_like(const std::string& columns, const std::string& order) {
  return "SELECT " + columns + R"(
    FROM sessions s JOIN trials t ON t.session = s.id
      JOIN devices d ON d.id = s.device JOIN problems p ON p.id = s.problem
    WHERE d.fingerprint = :fingerprint AND p.key = :key AND s.cold = :cold AND s.driver = :driver
      AND s.compiler = :compiler AND s.template_key = :template_key AND t.stand_in IS NULL
      AND t.config = :config AND )" +
         order;
}

void bind_trials_like(SQLite::Statement& select, const StoredWinner& result, const Config& config) {
  select.bind(":fingerprint", result.device.fingerprint());
  select.bind(":key", result.problem.key());
  select.bind(":cold", result.winner.cold);
  select.bind(":driver", result.provenance.driver);
  select.bind(":compiler", result.provenance.compiler);
  select.bind(":template_key", result.provenance.template_key);
  select.bind(":config", config.text());
}

const std::string& select_winner() {
  static const std::string query = select_winners(
      "WHERE d.fingerprint = :fingerprint AND w.problem = :key AND w.cold = :cold ORDER BY");
  return query;
}

const std::string& select_all_winners() {
  static const std::string query = select_winners("ORDER BY w.problem, d.name, d.id, w.cold DESC,");
  return query;
}

const std::string& select_problem_winners() {
  static const std::string query =
      select_winners("WHERE w.problem = :key AND w.cold = :cold ORDER BY d.id,");
  return query;
}

StoredWinner WinnerReader::read(SQLite::Statement& row) {
  StoredWinner stored;
  stored.problem = Problem::parse(text(row, "problem")).value();
  const auto device = row.getColumn("device").getInt64();
  auto known = devices_.find(device);
  if (known == devices_.end()) {
    known = devices_.emplace(device, device_from_json(json(row, "info"))).first;
  }
  stored.device = known->second;
  const bool here = !row.getColumn("opened_as").isNull();
  stored.device_id = here ? text(row, "opened_as") : stored.device.id();
  stored.session = here ? row.getColumn("session").getInt64() : 0;
  stored.provenance = {text(row, "greta_version"), text(row, "template_key"), text(row, "driver"),
                       text(row, "compiler"), text(row, "started_utc")};
  Winner& winner = stored.winner;
  const auto config = text(row, "config");
  const bool packed = config.starts_with('#');
  winner.config = forms_.read(config);
  winner.is_default = boolean(row, "is_default");
  winner.default_us = real(row, "default_us");
  winner.speedup = real(row, "speedup");
  winner.speedup_low = real(row, "speedup_low");
  winner.speedup_high = real(row, "speedup_high");
  winner.confidence = real(row, "confidence");
  winner.rounds = row.getColumn("rounds").getInt();
  winner.measurement = read_measurement(row);
  winner.default_samples_us =
      numbers_from_json(json(row, "default_samples_us"), "default_samples_us");
  winner.roofline = real(row, "roofline");
  winner.verdict = read_verdict(row);
  winner.card = text(row, "card");
  if (packed) {
    if (winner.card.starts_with('#')) winner.card = forms_.expand(winner.card);
    winner.verdict.method = forms_.expand(winner.verdict.method);
    winner.measurement.clocks = forms_.expand(winner.measurement.clocks);
  }
  winner.kernels = kernels_from_json(json(row, "kernels"));
  winner.cold = winner.measurement.cold = boolean(row, "cold");
  winner.ties = ties_from_json(json(row, "ties"), forms_, winner.config);
  if (!row.getColumn("neighbour").isNull()) {
    stored.regret = {text(row, "neighbour"), real(row, "regret"),
                     regret_source_from_text(text(row, "regret_source"))};
  }
  return stored;
}

std::vector<StoredWinner> WinnerReader::read_all(SQLite::Statement& rows,
                                                 const DeviceInfo* present) {
  std::vector<StoredWinner> all;
  while (rows.executeStep()) {
    try {
      all.push_back(read(rows));
    } catch (const Error& error) {
      unreadable_.push_back({"winners", text(rows, "problem").substr(0, 160), "",
                             text(rows, "device_name"),
                             std::string("can't be read: ") + error.what()});
    }
  }
  put_present_first(all, present);
  return all;
}

std::vector<StoredWinner> read_winners(SQLite::Database& database,
                                       const std::string& device_fingerprint,
                                       const std::string& problem_key, bool cold,
                                       const DeviceInfo* present) {
  SQLite::Statement select(database, select_winner());
  select.bind(":fingerprint", device_fingerprint);
  select.bind(":key", problem_key);
  select.bind(":cold", cold);
  return WinnerReader(database).read_all(select, present);
}

std::vector<StoredWinner> latest(std::vector<StoredWinner> winners) {
  std::vector<StoredWinner> first;
  for (auto& winner : winners) {
    if (first.empty() || !same_question(first.back(), winner)) first.push_back(std::move(winner));
  }
  return first;
}

}  // namespace greta::db
