#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "db/damage.hpp"

namespace greta::db {

// Damaged rows never leave a database, and no statement makes them sound. On a guarded connection,
// a table's plain name is a view of its sound rows: "FROM winners" can't read a damaged one, and
// can't write at all. "main.winners" is the table itself. Triggers on it reject every statement
// that would insert a row without its checksum, or give a damaged one a valid checksum. They also
// record the rows that were written, and the damaged rows that were removed.

/// Creates the views and, for a connection that writes, the triggers.
void guard_tables(SQLite::Database& database, bool writes);

enum class Existing { refused, replaced };

/// An INSERT of rows with checksums. Values are bound by the names of their columns; unbound
/// columns are NULL.
class SealedInsert {
 public:
  SealedInsert(SQLite::Database& database, const std::string& table, Existing existing,
               const std::vector<std::string>& columns);
  /// Returns the statement to which the next row's values are bound.
  SQLite::Statement& row() { return statement_; }
  /// Inserts the row and clears its values.
  void run();

 private:
  SQLite::Statement statement_;
};

/// Returns SQL that updates columns of sound rows and their checksums. Values, and parameters of
/// `condition`, are bound by name.
std::string sealed_update(SQLite::Database& database, const std::string& table,
                          const std::vector<std::string>& columns, const std::string& condition);

/// Returns an id that no row has and no row refers to: rows that lost their parent must not get a
/// new one.
std::int64_t next_id(SQLite::Database& database, const std::string& table);
/// Returns the query of next_id(), for callers that repeat it.
std::string select_next_id(SQLite::Database& database, const std::string& table);

/// Gives a damaged row another unique value so that it does not conflict with a new row. The old
/// row stays damaged. `condition` refers to main.TABLE; values are bound as ?1, ?2, ….
void set_aside(SQLite::Database& database, const std::string& table, const std::string& column,
               const std::string& condition, const std::vector<std::string>& values);

/// Removes and returns the sound rows of a table that satisfy `condition`. Their cause is a
/// reference to a row that is damaged or missing.
std::vector<DamagedRow> remove_sound(SQLite::Database& database, const std::string& table,
                                     const std::string& condition);

/// Returns all rows that are not sound, and results that refer to one.
std::vector<DamagedRow> damaged_rows(SQLite::Database& database, const std::string& left_out = {});
/// Returns the damaged trials of a problem's sessions.
std::vector<DamagedRow> damaged_trials(SQLite::Database& database, const std::string& problem);
/// Returns the damaged rows that this connection has replaced or removed.
std::vector<DamagedRow> discarded_rows(SQLite::Database& database);

struct WrittenRow {
  std::int64_t checksum = 0;
  std::set<std::int64_t> replaced;  ///< checksums of the sound rows it replaced
};
/// Written rows by table and key.
using WrittenRows = std::map<std::string, std::map<std::string, WrittenRow>>;
/// Returns the rows that this connection has written and not removed again.
WrittenRows written_rows(SQLite::Database& database);
/// Returns a text for each row of `written` that is not in the database. A result, a ceiling or a
/// similar row that another process has replaced is not missing. If it has its old content again,
/// it is.
std::vector<std::string> missing_rows(SQLite::Database& database, const WrittenRows& written);

}  // namespace greta::db
