#include "db/sqlite/card_migration.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "db/json.hpp"
#include "db/sqlite/checksums.hpp"
#include "db/sqlite/columns.hpp"
#include "db/sqlite/device_rows.hpp"
#include "db/sqlite/guard.hpp"
#include "db/sqlite/quoting.hpp"
#include "runtime/device/system/log.hpp"

namespace greta::db {
namespace {

/// A sound row of devices.
struct CardRow {
  std::int64_t id = 0;
  StoredDevice device;
};

/// The rows that are cards of one model, by their ids. The first one's id becomes the model's.
using ModelRows = std::vector<CardRow>;

/// Reads all models. Rows that can't be read stay as they are.
std::vector<ModelRows> read_models(SQLite::Database& database) {
  std::map<std::string, ModelRows> by_key;
  SQLite::Statement select(database, fmt::format("SELECT * FROM main.devices WHERE {} ORDER BY id",
                                                 is_sound(database, "devices")));
  while (select.executeStep()) {
    try {
      StoredDevice device{device_from_json(json(select, "info")), text(select, "first_seen_utc"),
                          text(select, "last_seen_utc")};
      auto& rows = by_key[device.info.fingerprint()];
      rows.push_back({select.getColumn("id").getInt64(), std::move(device)});
    } catch (const Error& error) {
      log(LogLevel::warning, "device {} stays as it is: {}", text(select, "name"), error.what());
    }
  }
  std::vector<ModelRows> models;
  for (auto& [key, rows] : by_key) models.push_back(std::move(rows));
  return models;
}

/// Makes the temporary tables that say what becomes of each row of devices, and which card each
/// sound session and set of circumstances belongs to.
void note_cards(SQLite::Database& database, const std::vector<ModelRows>& models) {
  database.exec(
      "CREATE TEMP TABLE greta_moved (of_device INTEGER PRIMARY KEY, of_model INTEGER,"
      " of_card TEXT)");
  SQLite::Statement insert(database, "INSERT INTO temp.greta_moved VALUES (?, ?, ?)");
  for (const auto& rows : models) {
    for (const auto& row : rows) {
      insert.bind(1, row.id);
      insert.bind(2, rows.front().id);
      insert.bind(3, row.device.info.card.uuid);
      insert.exec();
      insert.reset();
    }
  }
  for (const std::string table : {"sessions", "circumstances"}) {
    database.exec(fmt::format(R"(
      CREATE TEMP TABLE greta_{0} (of_row INTEGER PRIMARY KEY, of_card TEXT);
      INSERT INTO temp.greta_{0} SELECT t.id, m.of_card FROM main.{0} t
        JOIN temp.greta_moved m ON m.of_device = t.device WHERE m.of_card <> '' AND {1})",
                              table, is_sound(database, table, "t.")));
  }
}

/// Sets the column card of sound trials and winners.
void name_cards(SQLite::Database& database) {
  const auto name = [&](const char* table, const char* reference, const char* source) {
    rewrite_sound(
        database, table, fmt::format("{} IN (SELECT of_row FROM temp.{})", reference, source),
        {{"card",
          fmt::format("(SELECT of_card FROM temp.{} WHERE of_row = {})", source, reference)}});
  };
  name("trials", "session", "greta_sessions");
  name("winners", "circumstances", "greta_circumstances");
}

/// The place of a winner in its table.
struct WinnerKey {
  std::string problem;
  std::int64_t circumstances = 0;
  bool cold = false;

  std::string where() const {
    return fmt::format("problem = {} AND circumstances = {} AND cold = {}", text_literal(problem),
                       circumstances, cold ? 1 : 0);
  }
};

/// What decides which of two winners stays: certified, then certified later.
using Standing = std::tuple<bool, std::string, std::int64_t>;

struct FoundWinner {
  WinnerKey key;
  bool sound = false;
  Standing standing;
};

std::vector<FoundWinner> find_winners(SQLite::Database& database, const std::string& where) {
  SQLite::Statement select(database, fmt::format("SELECT *, {} AS sound FROM main.winners WHERE {}",
                                                 is_sound(database, "winners"), where));
  std::vector<FoundWinner> found;
  while (select.executeStep()) {
    const double us = real(select, "median_us");
    const bool certified = boolean(select, "passed") && select.getColumn("rounds").getInt() > 0 &&
                           std::isfinite(us) && us > 0;
    found.push_back(
        {{text(select, "problem"), select.getColumn("circumstances").getInt64(),
          boolean(select, "cold")},
         boolean(select, "sound"),
         {certified, text(select, "started_utc"), select.getColumn("session").getInt64()}});
  }
  return found;
}

void remove_winner(SQLite::Database& database, const FoundWinner& winner) {
  if (!winner.sound) {
    log(LogLevel::warning, "a damaged winner of {} is replaced", winner.key.problem);
  } else if (std::get<std::int64_t>(winner.standing) == 0) {
    log(LogLevel::warning,
        "a winner of {} without a session, of {}, is replaced by one of another card",
        winner.key.problem, std::get<std::string>(winner.standing));
  }
  database.exec("DELETE FROM main.winners WHERE " + winner.key.where());
}

/// Moves sound winners to other circumstances, where they meet those of another card.
void move_winners(SQLite::Database& database, std::int64_t from, std::int64_t to) {
  for (const auto& winner : find_winners(database, fmt::format("circumstances = {}", from))) {
    if (!winner.sound) continue;
    WinnerKey key = winner.key;
    key.circumstances = to;
    const auto there = find_winners(database, key.where());
    if (!there.empty() && there.front().sound && winner.standing < there.front().standing) {
      remove_winner(database, winner);
      continue;
    }
    if (!there.empty()) remove_winner(database, there.front());
    rewrite_sound(database, "winners", winner.key.where(), {{"circumstances", std::to_string(to)}});
  }
}

/// Removes a row that sound rows no longer refer to. It stays without a checksum if others do.
void retire(SQLite::Database& database, const std::string& table, std::int64_t id,
            const std::vector<std::string>& references) {
  std::string unused = fmt::format("id = {}", id);
  for (const auto& referring : references) {
    unused += fmt::format(" AND id NOT IN (SELECT {} FROM main.{})",
                          table == "devices" ? "device" : table, referring);
  }
  database.exec(fmt::format("DELETE FROM main.{} WHERE {}", table, unused));
  database.exec(fmt::format("UPDATE main.{} SET checksum = NULL WHERE id = {}", table, id));
}

/// Gives the model's row the circumstances of all cards. Equal ones become one.
void merge_circumstances(SQLite::Database& database) {
  std::vector<std::pair<std::int64_t, std::int64_t>> moved;  // ids of row and model
  {
    SQLite::Statement select(database, fmt::format(R"(
      SELECT t.id, m.of_model FROM main.circumstances t
        JOIN temp.greta_moved m ON m.of_device = t.device
      WHERE m.of_model <> m.of_device AND {} ORDER BY t.id)",
                                                   is_sound(database, "circumstances", "t.")));
    while (select.executeStep()) {
      moved.emplace_back(select.getColumn(0).getInt64(), select.getColumn(1).getInt64());
    }
  }
  for (const auto& [id, model] : moved) {
    const auto equal = fmt::format(
        "device = {} AND (driver, compiler, template_key) = (SELECT driver, compiler, template_key "
        "FROM main.circumstances WHERE id = {})",
        model, id);
    SQLite::Statement find(database,
                           fmt::format("SELECT id FROM main.circumstances WHERE {} AND {}", equal,
                                       is_sound(database, "circumstances")));
    if (find.executeStep()) {
      move_winners(database, id, find.getColumn(0).getInt64());
      retire(database, "circumstances", id, {"winners"});
    } else {
      set_aside(database, "circumstances", "driver", equal, {});
      rewrite_sound(database, "circumstances", fmt::format("id = {}", id),
                    {{"device", std::to_string(model)}});
    }
  }
}

/// Inserts a damaged row of an old table as it is into the new one.
void keep_damaged(SQLite::Database& database, const std::string& table,
                  const std::vector<std::string>& names, const std::vector<std::string>& values) {
  try {
    database.exec(fmt::format("INSERT INTO main.{} ({}, card) VALUES ({}, '')", table,
                              fmt::join(names, ", "), fmt::join(values, ", ")));
  } catch (const SQLite::Exception& error) {
    log(LogLevel::warning, "a damaged row of {} is not kept ({}): {}", table, error.what(),
        fmt::join(values, ", "));
  }
}

/// Moves the rows of ceilings or unsafe to the table that has a row for each card.
void move_to_cards(SQLite::Database& database, const std::string& table) {
  const auto old = table + "_of_schema_5";
  const auto value = [](const std::string& name) -> std::string {
    if (name == "device") return "coalesce(m.of_model, t.device)";
    if (name == "card") return "coalesce(m.of_card, '')";
    return "t." + identifier(name);
  };
  const auto names = content_columns(database, table);
  std::vector<std::string> values;
  for (const auto& name : names) values.push_back(value(name));
  database.exec(fmt::format(R"(
    INSERT INTO main.{} ({}, checksum) SELECT {}, {} FROM main.{} t
      LEFT JOIN temp.greta_moved m ON m.of_device = t.device WHERE {})",
                            table, fmt::join(names, ", "), fmt::join(values, ", "),
                            checksum_of(database, table, value), old,
                            is_sound(database, old, "t.")));
  auto kept = content_columns(database, old);
  kept.emplace_back("checksum");
  std::vector<std::vector<std::string>> damaged;
  {
    SQLite::Statement select(
        database, fmt::format("SELECT quote({}) FROM main.{} WHERE NOT {}",
                              fmt::join(kept, "), quote("), old, is_sound(database, old)));
    while (select.executeStep()) {
      auto& row = damaged.emplace_back();
      for (int i = 0; i < select.getColumnCount(); ++i) {
        row.push_back(select.getColumn(i).getString());
      }
    }
  }
  for (const auto& row : damaged) keep_damaged(database, table, kept, row);
  database.exec(fmt::format("DROP TABLE main.{}", old));
}

/// Writes a model's row and its cards, and removes the other rows.
void write_model(SQLite::Database& database, const ModelRows& rows) {
  const auto by_age = [](const CardRow& a, const CardRow& b) {
    return std::tie(a.device.last_seen_utc, a.id) < std::tie(b.device.last_seen_utc, b.id);
  };
  StoredDevice model = std::max_element(rows.begin(), rows.end(), by_age)->device;
  for (const auto& row : rows) {
    const StoredDevice& one = row.device;
    model.first_seen_utc = std::min(model.first_seen_utc, one.first_seen_utc);
    put_card(database, rows.front().id, {one.info.card, one.first_seen_utc, one.last_seen_utc});
  }
  const auto key = model.info.fingerprint();
  set_aside(database, "devices", "fingerprint", "fingerprint = ?1", {key});
  update_device(database, rows.front().id, model);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    retire(database, "devices", rows[i].id, {"sessions", "circumstances", "ceilings", "unsafe"});
  }
}

}  // namespace

void merge_cards(SQLite::Database& database) {
  const auto models = read_models(database);
  note_cards(database, models);
  name_cards(database);
  merge_circumstances(database);
  rewrite_sound(database, "sessions",
                "device IN (SELECT of_device FROM temp.greta_moved WHERE of_model <> of_device)",
                {{"device", "(SELECT of_model FROM temp.greta_moved WHERE of_device = device)"}});
  move_to_cards(database, "ceilings");
  move_to_cards(database, "unsafe");
  for (const auto& rows : models) write_model(database, rows);
  database.exec(
      "DROP TABLE temp.greta_moved; DROP TABLE temp.greta_sessions;"
      "DROP TABLE temp.greta_circumstances");
}

}  // namespace greta::db
