#include "db/sqlite/migrations.hpp"

#include <fmt/format.h>

#include <map>

namespace greta::db {
namespace {

/// What each table and index is made by; nothing for those that SQLite makes itself.
std::map<std::string, std::string> schema_of(SQLite::Database& database) {
  std::map<std::string, std::string> entries;
  SQLite::Statement select(
      database, "SELECT type || ' ' || name || ' of ' || tbl_name, sql FROM sqlite_schema");
  while (select.executeStep()) {
    entries.emplace(select.getColumn(0).getString(), select.getColumn(1).getString());
  }
  return entries;
}

}  // namespace

const std::vector<Migration>& migrations() {
  static const std::vector<Migration> list = [] {
    std::vector<Migration> steps;
    for (const auto& file : schema_files()) {
      steps.push_back({static_cast<int>(steps.size()) + 1, file.text});
    }
    return steps;
  }();
  return list;
}

std::vector<std::string> check_schema(SQLite::Database& database, bool shipped) {
  SQLite::Database fresh(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  const int schema = database.execAndGet("PRAGMA user_version").getInt();
  for (const auto& step : migrations()) {
    if (step.version <= schema) fresh.exec(std::string(step.sql));
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
