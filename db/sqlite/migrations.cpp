#include "db/sqlite/migrations.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <map>

#include "db/earlier_keys.hpp"
#include "db/sqlite/card_migration.hpp"
#include "db/sqlite/checksums.hpp"
#include "db/sqlite/quoting.hpp"

namespace greta::db {
namespace {

/// Returns the SQL of each table and index; empty for those that SQLite creates itself.
std::map<std::string, std::string> schema_of(SQLite::Database& database) {
  std::map<std::string, std::string> entries;
  SQLite::Statement select(
      database,
      "SELECT type || ' ' || name || iif(name = tbl_name, '', ' of ' || tbl_name), sql"
      " FROM sqlite_schema");
  while (select.executeStep()) {
    entries.emplace(select.getColumn(0).getString(), select.getColumn(1).getString());
  }
  return entries;
}

/// Implements the SQL functions greta_today(text) for a problem's key and greta_today_dims(text)
/// for its dimensions.
template <std::string (*today)(std::string_view)>
void today_function(sqlite3_context* context, int, sqlite3_value** arguments) {
  const auto* const text = sqlite3_value_text(arguments[0]);
  if (text == nullptr) return sqlite3_result_null(context);
  const std::string result = today(reinterpret_cast<const char*>(text));
  sqlite3_result_text(context, result.c_str(), -1, SQLITE_TRANSIENT);
}

/// Migrates to schema 5 as described in 0005_masks.sql.
void rename_masks(SQLite::Database& database) {
  database.createFunction("greta_today", 1, true, nullptr, today_function<today_key>, nullptr,
                          nullptr, nullptr);
  database.createFunction("greta_today_dims", 1, true, nullptr, today_function<today_dims>, nullptr,
                          nullptr, nullptr);
  const auto renamed = [](const char* column) {
    return fmt::format("{0} LIKE 'attention %' OR {0} LIKE 'rope %'", column);
  };
  rewrite_sound(database, "problems", renamed("key"),
                {{"key", "greta_today(key)"}, {"dims", "greta_today_dims(dims)"}});
  rewrite_sound(database, "trials", renamed("stand_in"), {{"stand_in", "greta_today(stand_in)"}});
  rewrite_sound(database, "peers", renamed("problem"), {{"problem", "greta_today(problem)"}});
  // The cost of a neighbour with another mask no longer counts as regret.
  const std::string same = "substr(neighbour, -1) IS substr(problem, -1)";
  const auto kept = [&](const char* column, const char* sql) {
    return fmt::format("CASE WHEN problem LIKE 'attention %' AND NOT {} THEN NULL ELSE {} END",
                       same, fmt::format(fmt::runtime(sql), column));
  };
  rewrite_sound(database, "winners", renamed("problem"),
                {{"problem", "greta_today(problem)"},
                 {"neighbour", kept("neighbour", "greta_today_dims({})")},
                 {"regret", kept("regret", "{}")},
                 {"regret_source", kept("regret_source", "{}")}});
}

}  // namespace

const std::vector<Migration>& migrations() {
  static const std::vector<Migration> list = [] {
    std::vector<Migration> steps;
    for (const auto& file : schema_files()) {
      steps.push_back({static_cast<int>(steps.size()) + 1, file.text});
    }
    steps.at(last_schema_of_earlier_keys).then = rename_masks;
    steps.at(last_schema_of_single_cards).then = merge_cards;
    return steps;
  }();
  return list;
}

std::vector<std::string> check_schema(SQLite::Database& database, bool shipped) {
  SQLite::Database fresh(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  add_checksum_function(fresh);
  const int schema = database.execAndGet("PRAGMA user_version").getInt();
  for (const auto& step : migrations()) {
    if (step.version > schema) break;
    fresh.exec(std::string(step.sql));
    if (step.then != nullptr) step.then(fresh);
  }
  if (shipped) fresh.exec(fmt::format("DROP INDEX IF EXISTS {}", unshipped_index));
  const auto expected = schema_of(fresh);
  const auto found = schema_of(database);
  std::vector<std::string> lines;
  for (const auto& [name, sql] : expected) {
    const auto there = found.find(name);
    if (there == found.end()) {
      lines.push_back(fmt::format("schema: there is no {}", name));
    } else if (there->second != sql) {
      lines.push_back(fmt::format("schema: {} is not as it was made", name));
    }
  }
  for (const auto& [name, sql] : found) {
    if (expected.count(name) == 0) lines.push_back(fmt::format("schema: unknown {}", name));
  }
  return lines;
}

}  // namespace greta::db
