#include "db/sqlite/checksums.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <bit>

#include "db/sqlite/quoting.hpp"
#include "runtime/device/text/hash.hpp"

namespace greta::db {
namespace {

/// Implements the SQL function greta_checksum(name, value, name, value, …).
void checksum_function(sqlite3_context* context, int count, sqlite3_value** arguments) {
  const auto bytes = [](sqlite3_value* value) {
    const void* const data = sqlite3_value_blob(value);
    const auto size = static_cast<std::size_t>(sqlite3_value_bytes(value));
    return data == nullptr ? std::string_view()
                           : std::string_view(static_cast<const char*>(data), size);
  };
  Hash hash;
  for (int i = 0; i + 1 < count; i += 2) {
    sqlite3_value* const value = arguments[i + 1];
    const int type = sqlite3_value_type(value);
    if (type == SQLITE_NULL) continue;
    hash.add(bytes(arguments[i])).add(static_cast<std::uint64_t>(type));
    if (type == SQLITE_INTEGER) {
      hash.add(static_cast<std::uint64_t>(sqlite3_value_int64(value)));
    } else if (type == SQLITE_FLOAT) {
      const double number = sqlite3_value_double(value);
      hash.add(std::bit_cast<std::uint64_t>(number == 0 ? 0.0 : number));  // -0 is stored as 0
    } else {
      hash.add(bytes(value));
    }
  }
  sqlite3_result_int64(context, static_cast<sqlite3_int64>(hash.low()));
}

std::vector<std::string> read_texts(SQLite::Database& database, const std::string& query) {
  std::vector<std::string> texts;
  SQLite::Statement select(database, query);
  while (select.executeStep()) texts.push_back(select.getColumn(0).getString());
  return texts;
}

std::vector<std::string> columns(SQLite::Database& database, const std::string& table,
                                 const std::string& condition) {
  return read_texts(database, fmt::format("SELECT name FROM pragma_table_info({}, 'main') WHERE {}",
                                          text_literal(table), condition));
}

}  // namespace

void add_checksum_function(SQLite::Database& database) {
  database.createFunction("greta_checksum", -1, true, nullptr, checksum_function, nullptr, nullptr,
                          nullptr);
}

// The names are listed because a table of another program may have such a column, too.
std::vector<std::string> sealed_tables(SQLite::Database& database) {
  return read_texts(database, R"(
    SELECT m.name FROM main.sqlite_schema m JOIN pragma_table_info(m.name, 'main') c
    WHERE m.type = 'table' AND c.name = 'checksum' AND m.name IN (
      'binaries', 'cards', 'ceilings', 'circumstances', 'comparisons', 'config_forms', 'counters', 'devices',
      'energy_winners', 'finalists', 'kernels', 'peers',
      'pins', 'problems', 'runs', 'sessions', 'trials', 'unsafe', 'winners') ORDER BY m.name)");
}

std::vector<std::string> key_columns(SQLite::Database& database, const std::string& table) {
  auto keys = columns(database, table, "pk > 0");
  if (keys.empty()) keys.emplace_back("rowid");
  return keys;
}

std::vector<std::string> content_columns(SQLite::Database& database, const std::string& table) {
  return columns(database, table, "name <> 'checksum'");
}

std::string checksum_of(SQLite::Database& database, const std::string& table,
                        const ColumnValue& value) {
  std::string arguments;
  for (const auto& name : content_columns(database, table)) {
    arguments +=
        fmt::format("{}{}, {}", arguments.empty() ? "" : ", ", text_literal(name), value(name));
  }
  return fmt::format("greta_checksum({})", arguments);
}

std::string is_sound(SQLite::Database& database, const std::string& table, const std::string& row) {
  const auto stored = [&](const std::string& name) { return row + identifier(name); };
  return fmt::format("({} IS {})", stored("checksum"), checksum_of(database, table, stored));
}

void rewrite_sound(SQLite::Database& database, const std::string& table, const std::string& where,
                   const std::map<std::string, std::string>& changes) {
  const auto value = [&](const std::string& name) {
    const auto change = changes.find(name);
    return change != changes.end() ? change->second : identifier(name);
  };
  std::string set = "checksum = " + checksum_of(database, table, value);
  for (const auto& [name, sql] : changes) set += fmt::format(", {} = {}", identifier(name), sql);
  database.exec(fmt::format("UPDATE main.{} SET {} WHERE ({}) AND {}", identifier(table), set,
                            where, is_sound(database, table)));
}

void seal_for_the_first_time(SQLite::Database& database) {
  for (const auto& table : sealed_tables(database)) {
    database.exec(fmt::format("UPDATE main.{} SET checksum = {}", identifier(table),
                              checksum_of(database, table, identifier)));
  }
}

namespace {

struct TableSum {
  std::int64_t rows = 0, sum = 0;
};

TableSum sum_of(SQLite::Database& database, const std::string& table) {
  // Sums of 64-bit numbers overflow in SQL. Sums of their halves don't, for any realistic number of
  // rows.
  SQLite::Statement select(database, fmt::format(R"(
    SELECT count(*), coalesce(sum(checksum & 0xffffffff), 0), coalesce(sum(checksum >> 32), 0)
    FROM main.{})",
                                                 identifier(table)));
  select.executeStep();
  const auto high = static_cast<std::uint64_t>(select.getColumn(2).getInt64());
  return {select.getColumn(0).getInt64(),
          static_cast<std::int64_t>(static_cast<std::uint64_t>(select.getColumn(1).getInt64()) +
                                    (high << 32))};
}

}  // namespace

void write_manifest(SQLite::Database& database, const std::set<std::string>& except) {
  SQLite::Statement insert(
      database, "INSERT OR IGNORE INTO manifest (name, row_count, sum) VALUES (?, ?, ?)");
  for (const auto& table : sealed_tables(database)) {
    if (except.contains(table)) continue;
    const TableSum found = sum_of(database, table);
    insert.bind(1, table);
    insert.bind(2, found.rows);
    insert.bind(3, found.sum);
    insert.exec();
    insert.reset();
  }
}

std::set<std::string> remove_correct_lines_of_manifest(SQLite::Database& database) {
  if (database.execAndGet("SELECT count(*) FROM main.manifest").getInt() == 0) return {};
  std::set<std::string> left;
  SQLite::Statement remove(
      database, "DELETE FROM main.manifest WHERE name = ? AND row_count = ? AND sum = ?");
  for (const auto& table : sealed_tables(database)) {
    const TableSum found = sum_of(database, table);
    remove.bind(1, table);
    remove.bind(2, found.rows);
    remove.bind(3, found.sum);
    if (remove.exec() == 0) left.insert(table);
    remove.reset();
  }
  return left;
}

std::vector<std::string> check_manifest(SQLite::Database& database) {
  std::vector<std::string> lines;
  SQLite::Statement select(database, "SELECT name, row_count, sum FROM manifest ORDER BY name");
  const auto known = sealed_tables(database);
  std::size_t listed = 0;
  for (; select.executeStep(); ++listed) {
    const auto name = select.getColumn(0).getString();
    const auto rows = select.getColumn(1).getInt64();
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      lines.push_back(fmt::format("manifest: there is no table {}", name));
      continue;
    }
    const TableSum found = sum_of(database, name);
    if (found.rows != rows) {
      lines.push_back(fmt::format("{}: {} rows, {} were shipped", name, found.rows, rows));
    } else if (found.sum != select.getColumn(2).getInt64()) {
      lines.push_back(fmt::format("{}: the rows are not those that were shipped", name));
    }
  }
  if (listed > 0 && listed != known.size()) {
    lines.push_back(fmt::format("manifest: {} of {} tables", listed, known.size()));
  }
  return lines;
}

}  // namespace greta::db
