#include "db/sqlite/guard.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "db/sqlite/checksums.hpp"
#include "db/sqlite/quoting.hpp"

namespace greta::db {
namespace {

/// Returns SQL for a row's key in messages: "7", or "gemm …, 1, 1".
std::string shown_key(SQLite::Database& database, const std::string& table,
                      const std::string& row) {
  std::vector<std::string> parts;
  for (const auto& name : key_columns(database, table)) {
    parts.push_back(
        fmt::format("coalesce(substr(CAST({}{} AS TEXT), 1, 160), '')", row, identifier(name)));
  }
  return fmt::format("{}", fmt::join(parts, " || ', ' || "));
}

/// Returns SQL for a row's key in a form that identifies the row.
std::string exact_key(SQLite::Database& database, const std::string& table,
                      const std::string& row) {
  std::vector<std::string> parts;
  for (const auto& name : key_columns(database, table)) {
    parts.push_back(fmt::format("quote({}{})", row, identifier(name)));
  }
  return fmt::format("{}", fmt::join(parts, " || ', ' || "));
}

std::string named(SQLite::Database& database, const std::string& table, const std::string& key) {
  return fmt::format("{} ({})", key, fmt::join(key_columns(database, table), ", "));
}

/// Returns SQL for a row's problem and device name, or "NULL" for each that it lacks.
std::string subject(const std::string& table, const std::string& row) {
  const auto device_of = [&](const char* column) {
    return fmt::format("(SELECT d.name FROM main.devices d WHERE d.id = {}{})", row, column);
  };
  const auto of_session = [&](const char* column) {
    const auto from = fmt::format(
        "FROM main.sessions s LEFT JOIN main.problems p ON p.id = s.problem "
        "LEFT JOIN main.devices d ON d.id = s.device WHERE s.id = {}{})",
        row, column);
    return fmt::format("(SELECT p.key {}, (SELECT d.name {}", from, from);
  };
  if (table == "devices") return fmt::format("NULL, {}name", row);
  if (table == "problems") return fmt::format("{}key, NULL", row);
  if (table == "peers") return fmt::format("{}problem, NULL", row);
  if (table == "counters") return fmt::format("{0}problem, {0}device_name", row);
  if (table == "pins") return fmt::format("{}problem, {}", row, device_of("device"));
  if (table == "cards" || table == "circumstances" || table == "ceilings" || table == "unsafe") {
    return "NULL, " + device_of("device");
  }
  if (table == "sessions") {
    return fmt::format("(SELECT p.key FROM main.problems p WHERE p.id = {}problem), {}", row,
                       device_of("device"));
  }
  if (table == "trials" || table == "finalists") return of_session("session");
  if (table == "comparisons") return of_session("faster");
  if (table == "winners" || table == "energy_winners") {
    return fmt::format(
        "{0}problem, (SELECT d.name FROM main.circumstances c JOIN main.devices d "
        "ON d.id = c.device WHERE c.id = {0}circumstances)",
        row);
  }
  return "NULL, NULL";
}

/// Returns the tables that need a view. Tables without checksums, as in a damaged schema, have no
/// sound rows either. Other programs' tables with the names of the temporary tables need no view,
/// because nothing here reads them.
std::vector<std::string> all_tables(SQLite::Database& database) {
  std::vector<std::string> names;
  SQLite::Statement select(database, R"(
    SELECT name FROM main.sqlite_schema
    WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name <> 'manifest'
      AND name COLLATE NOCASE NOT IN ('greta_written', 'greta_replaced', 'greta_discarded'))");
  while (select.executeStep()) names.push_back(select.getColumn(0).getString());
  return names;
}

/// Returns the start of a trigger on a table. `event` is "INSERT", for example.
std::string trigger(const std::string& table, const char* event) {
  return fmt::format("CREATE TEMP TRIGGER {} AFTER {} ON main.{} BEGIN\n",
                     identifier(fmt::format("{} after {}", table, event)), event,
                     identifier(table));
}

/// Returns SQL that aborts the statement if `condition` holds.
std::string refuse(const std::string& table, const char* why, const std::string& condition) {
  return fmt::format("SELECT RAISE(ABORT, {}) WHERE {};\n",
                     text_literal(fmt::format("{}: {}", table, why)), condition);
}

std::string insert_trigger(SQLite::Database& database, const std::string& table) {
  return trigger(table, "INSERT") +
         refuse(table, "a row without its checksum", "NOT " + is_sound(database, table, "NEW.")) +
         fmt::format("INSERT OR REPLACE INTO greta_written VALUES ({}, {}, NEW.checksum); END;",
                     text_literal(table), exact_key(database, table, "NEW."));
}

std::string update_trigger(SQLite::Database& database, const std::string& table) {
  const auto was = is_sound(database, table, "OLD."), is = is_sound(database, table, "NEW.");
  return trigger(table, "UPDATE") +
         refuse(table, "a damaged row would get a valid checksum",
                fmt::format("NOT {} AND {}", was, is)) +
         refuse(table, "a row would lose its checksum", fmt::format("{} AND NOT {}", was, is)) +
         fmt::format(R"(
      DELETE FROM greta_written WHERE place = {0} AND row_key = {1};
      INSERT OR IGNORE INTO greta_replaced SELECT {0}, {1}, OLD.checksum WHERE {2};
      INSERT OR REPLACE INTO greta_written SELECT {0}, {3}, NEW.checksum WHERE {4};
    END;)",
                     text_literal(table), exact_key(database, table, "OLD."), was,
                     exact_key(database, table, "NEW."), is);
}

std::string delete_trigger(SQLite::Database& database, const std::string& table) {
  return trigger(table, "DELETE") +
         fmt::format(R"(
      DELETE FROM greta_written WHERE place = {0} AND row_key = {1};
      INSERT OR IGNORE INTO greta_replaced SELECT {0}, {1}, OLD.checksum WHERE {4};
      INSERT INTO greta_discarded SELECT {0}, {2}, {3} WHERE NOT {4};
    END;)",
                     text_literal(table), exact_key(database, table, "OLD."),
                     shown_key(database, table, "OLD."), subject(table, "OLD."),
                     is_sound(database, table, "OLD."));
}

DamagedRow damaged_row(SQLite::Database& database, const std::string& table,
                       SQLite::Statement& found, int first, std::string cause) {
  return {table, named(database, table, found.getColumn(first).getString()),
          found.getColumn(first + 1).getString(), found.getColumn(first + 2).getString(),
          std::move(cause)};
}

/// Adds sound results whose circumstances or device are not sound.
void add_results_without_origin(SQLite::Database& database, std::vector<DamagedRow>& rows) {
  SQLite::Statement select(
      database, fmt::format(R"(
    SELECT {}, {}, c.id IS NULL FROM winners t LEFT JOIN circumstances c ON c.id = t.circumstances
      LEFT JOIN devices d ON d.id = c.device WHERE d.id IS NULL)",
                            shown_key(database, "winners", "t."), subject("winners", "t.")));
  while (select.executeStep()) {
    const bool circumstances = select.getColumn(3).getInt() != 0;
    rows.push_back(damaged_row(database, "winners", select, 0,
                               circumstances
                                   ? "refers to an environment that is damaged or missing"
                                   : "refers to a device whose row is damaged or missing"));
  }
}

}  // namespace

void guard_tables(SQLite::Database& database, bool writes) {
  const auto tables = sealed_tables(database);
  std::string sql = "PRAGMA temp_store = MEMORY; PRAGMA recursive_triggers = ON; BEGIN;";
  for (const auto& table : all_tables(database)) {
    const bool sealed = std::find(tables.begin(), tables.end(), table) != tables.end();
    sql += fmt::format("CREATE TEMP VIEW {0} AS SELECT * FROM main.{0} WHERE {1};",
                       identifier(table), sealed ? is_sound(database, table) : "false");
  }
  sql +=
      "CREATE TEMP TABLE greta_written (place TEXT, row_key TEXT, checksum INTEGER,"
      " PRIMARY KEY (place, row_key)) WITHOUT ROWID;"
      "CREATE TEMP TABLE greta_replaced (place TEXT, row_key TEXT, checksum INTEGER,"
      " PRIMARY KEY (place, row_key, checksum)) WITHOUT ROWID;"
      "CREATE TEMP TABLE greta_discarded (place TEXT, row_key TEXT, problem TEXT, device TEXT);";
  if (writes) {
    for (const auto& table : tables) {
      sql += insert_trigger(database, table) + update_trigger(database, table) +
             delete_trigger(database, table);
    }
  }
  database.exec(sql + "COMMIT");
}

namespace {

std::string insert_sql(SQLite::Database& database, const std::string& table, Existing existing,
                       const std::vector<std::string>& columns) {
  const auto value = [&](const std::string& name) {
    const bool given = std::find(columns.begin(), columns.end(), name) != columns.end();
    return given ? ":" + name : "NULL";
  };
  return fmt::format("INSERT {}INTO main.{} ({}, checksum) VALUES (:{}, {})",
                     existing == Existing::replaced ? "OR REPLACE " : "", identifier(table),
                     fmt::join(columns, ", "), fmt::join(columns, ", :"),
                     checksum_of(database, table, value));
}

}  // namespace

SealedInsert::SealedInsert(SQLite::Database& database, const std::string& table, Existing existing,
                           const std::vector<std::string>& columns)
    : statement_(database, insert_sql(database, table, existing, columns)) {}

void SealedInsert::run() {
  statement_.exec();
  statement_.reset();
  statement_.clearBindings();
}

std::string sealed_update(SQLite::Database& database, const std::string& table,
                          const std::vector<std::string>& columns, const std::string& condition) {
  std::vector<std::string> changes;
  for (const auto& name : columns) changes.push_back(fmt::format("{0} = :{0}", name));
  const auto value = [&](const std::string& name) {
    const bool given = std::find(columns.begin(), columns.end(), name) != columns.end();
    return given ? ":" + name : identifier(name);
  };
  return fmt::format("UPDATE main.{} SET {}, checksum = {} WHERE ({}) AND {}", identifier(table),
                     fmt::join(changes, ", "), checksum_of(database, table, value), condition,
                     is_sound(database, table));
}

std::string select_next_id(SQLite::Database& database, const std::string& table) {
  // Damage may have changed an id to any number. Counting never reaches ids beyond this limit.
  constexpr std::int64_t most = std::int64_t{1} << 48;
  std::vector<std::string> sources{
      fmt::format("SELECT max(id) AS id FROM main.{} WHERE id < {}", identifier(table), most)};
  SQLite::Statement references(database, R"(
    SELECT m.name, f."from" FROM main.sqlite_schema m
      JOIN pragma_foreign_key_list(m.name, 'main') f WHERE m.type = 'table' AND f."table" = ?)");
  references.bind(1, table);
  while (references.executeStep()) {
    sources.push_back(fmt::format("SELECT max({0}) FROM main.{1} WHERE {0} < {2}",
                                  identifier(references.getColumn(1).getString()),
                                  identifier(references.getColumn(0).getString()), most));
  }
  return fmt::format("SELECT 1 + max(coalesce(max(id), 0), 0) FROM ({})",
                     fmt::join(sources, " UNION ALL "));
}

std::int64_t next_id(SQLite::Database& database, const std::string& table) {
  SQLite::Statement select(database, select_next_id(database, table));
  select.executeStep();
  return select.getColumn(0).getInt64();
}

void set_aside(SQLite::Database& database, const std::string& table, const std::string& column,
               const std::string& condition, const std::vector<std::string>& values) {
  SQLite::Statement update(
      database,
      fmt::format("UPDATE main.{0} SET {1} = substr({1}, 1, 160) || ' (damaged ' || "
                  "hex(randomblob(8)) || ')' WHERE ({2}) AND NOT {3}",
                  identifier(table), identifier(column), condition, is_sound(database, table)));
  for (std::size_t i = 0; i < values.size(); ++i) update.bind(static_cast<int>(i) + 1, values[i]);
  update.exec();
}

std::vector<DamagedRow> remove_sound(SQLite::Database& database, const std::string& table,
                                     const std::string& condition) {
  const auto where = fmt::format("FROM main.{} AS t WHERE {} AND {}", identifier(table), condition,
                                 is_sound(database, table));
  std::vector<DamagedRow> rows;
  {
    SQLite::Statement select(database,
                             fmt::format("SELECT {}, {} {}", shown_key(database, table, "t."),
                                         subject(table, "t."), where));
    while (select.executeStep()) {
      rows.push_back(
          damaged_row(database, table, select, 0, "refers to a row that is damaged or missing"));
    }
  }
  database.exec("DELETE " + where);
  return rows;
}

namespace {

/// Adds the damaged rows of a table that meet a condition on t.
void add_damaged(SQLite::Database& database, const std::string& table, const std::string& condition,
                 const std::string& value, std::vector<DamagedRow>& rows) {
  SQLite::Statement select(
      database, fmt::format("SELECT {}, {}, t.checksum IS NULL FROM main.{} t WHERE {} AND NOT {}",
                            shown_key(database, table, "t."), subject(table, "t."),
                            identifier(table), condition, is_sound(database, table, "t.")));
  if (!value.empty()) select.bind(1, value);
  while (select.executeStep()) {
    const bool unsealed = select.getColumn(3).getInt() != 0;
    rows.push_back(damaged_row(database, table, select, 0,
                               unsealed ? "has no checksum" : "does not match its checksum"));
  }
}

}  // namespace

std::vector<DamagedRow> damaged_rows(SQLite::Database& database, const std::string& left_out) {
  std::vector<DamagedRow> rows;
  for (const auto& table : sealed_tables(database)) {
    if (table != left_out) add_damaged(database, table, "true", "", rows);
  }
  add_results_without_origin(database, rows);
  return rows;
}

std::vector<DamagedRow> damaged_trials(SQLite::Database& database, const std::string& problem) {
  std::vector<DamagedRow> rows;
  add_damaged(database, "trials",
              "t.session IN (SELECT s.id FROM main.sessions s JOIN main.problems p "
              "ON p.id = s.problem WHERE p.key = ?1)",
              problem, rows);
  return rows;
}

std::vector<DamagedRow> discarded_rows(SQLite::Database& database) {
  std::vector<DamagedRow> rows;
  SQLite::Statement select(database, "SELECT place, row_key, problem, device FROM greta_discarded");
  while (select.executeStep()) {
    rows.push_back(
        damaged_row(database, select.getColumn(0).getString(), select, 1, "was damaged"));
  }
  return rows;
}

WrittenRows written_rows(SQLite::Database& database) {
  WrittenRows rows;
  SQLite::Statement select(database, R"(
    SELECT w.place, w.row_key, w.checksum, r.checksum FROM greta_written w
    LEFT JOIN greta_replaced r ON r.place = w.place AND r.row_key = w.row_key)");
  while (select.executeStep()) {
    auto& row = rows[select.getColumn(0).getString()][select.getColumn(1).getString()];
    row.checksum = select.getColumn(2).getInt64();
    if (!select.getColumn(3).isNull()) row.replaced.insert(select.getColumn(3).getInt64());
  }
  return rows;
}

namespace {

/// Reads the sound rows of a table, from the first id of `rows` on if the table has numeric ids,
/// otherwise all.
std::map<std::string, std::int64_t> read_keys(SQLite::Database& database, const std::string& table,
                                              const std::map<std::string, WrittenRow>& rows) {
  std::string from;
  if (key_columns(database, table) == std::vector<std::string>{"id"}) {
    std::int64_t first = std::stoll(rows.begin()->first);
    for (const auto& [key, row] : rows) first = std::min<std::int64_t>(first, std::stoll(key));
    from = fmt::format(" WHERE id >= {}", first);
  }
  std::map<std::string, std::int64_t> there;
  SQLite::Statement select(
      database, fmt::format("SELECT {}, checksum FROM {}{}", exact_key(database, table, ""),
                            identifier(table), from));
  while (select.executeStep()) {
    there.emplace(select.getColumn(0).getString(), select.getColumn(1).getInt64());
  }
  return there;
}

/// Whether a sound row with the key of a written one means that nothing was lost. Other processes
/// refresh devices and cards, and replace results. A row that was replaced before must not come
/// back.
bool stands_for(const std::string& table, const WrittenRow& written, std::int64_t checksum) {
  if (checksum == written.checksum || table == "devices" || table == "cards") return true;
  const bool shared = table == "winners" || table == "energy_winners" || table == "ceilings" ||
                      table == "unsafe" || table == "comparisons" || table == "peers" ||
                      table == "pins" || table == "kernels" || table == "binaries" ||
                      table == "counters";
  return shared && written.replaced.count(checksum) == 0;
}

}  // namespace

std::vector<std::string> missing_rows(SQLite::Database& database, const WrittenRows& written) {
  std::vector<std::string> missing;
  const auto known = sealed_tables(database);
  for (const auto& [table, rows] : written) {
    const bool there = std::find(known.begin(), known.end(), table) != known.end();
    const auto stored =
        there ? read_keys(database, table, rows) : std::map<std::string, std::int64_t>();
    for (const auto& [key, row] : rows) {
      const auto found = stored.find(key);
      if (found == stored.end() || !stands_for(table, row, found->second)) {
        missing.push_back(fmt::format("{} {}", table, key));
      }
    }
  }
  return missing;
}

}  // namespace greta::db
