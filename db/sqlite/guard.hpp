#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "db/damage.hpp"

namespace greta::db {

// Damaged rows never leave a database, and nothing makes them sound. On a guarded connection a
// table's plain name is a view of its sound rows: "FROM winners" can't read a damaged one, and
// can't write at all. "main.winners" is the table itself; triggers on it refuse every statement
// that would leave a new row without its checksum, or give a damaged one a valid checksum. They
// also note what was written, and which damaged rows went.

/// Makes the views, and for a connection that writes the triggers.
void guard_tables(SQLite::Database& database, bool writes);

enum class Existing { refused, replaced };

/// An INSERT of sealed rows. Values are bound by the names of their columns; what is not bound is
/// NULL.
class SealedInsert {
 public:
  SealedInsert(SQLite::Database& database, const std::string& table, Existing existing,
               const std::vector<std::string>& columns);
  /// Where to bind the next row's values.
  SQLite::Statement& row() { return statement_; }
  /// Inserts the row and forgets its values.
  void run();

 private:
  SQLite::Statement statement_;
};

/// SQL that changes columns of sound rows and seals them again; values and what `condition` needs
/// are bound by name.
std::string sealed_update(SQLite::Database& database, const std::string& table,
                          const std::vector<std::string>& columns, const std::string& condition);

/// An id that no row has and none refers to: rows whose parent was lost must not find a new one.
std::int64_t next_id(SQLite::Database& database, const std::string& table);

/// Puts a damaged row out of the way of a new one that needs its unique value: the old row gets
/// another value, and stays as damaged as it is. `condition` is about main.TABLE; values are bound
/// as ?1, ?2, ….
void set_aside(SQLite::Database& database, const std::string& table, const std::string& column,
               const std::string& condition, const std::vector<std::string>& values);

/// Removes the sound rows of a table of which `condition` holds, and names them: their cause is
/// that they refer to a row that is damaged or not there.
std::vector<DamagedRow> remove_sound(SQLite::Database& database, const std::string& table,
                                     const std::string& condition);

/// All rows that are not sound, and results that refer to one.
std::vector<DamagedRow> damaged_rows(SQLite::Database& database);
/// Damaged rows that this connection replaced or removed.
std::vector<DamagedRow> discarded_rows(SQLite::Database& database);

struct WrittenRow {
  std::int64_t checksum = 0;
  std::set<std::int64_t> replaced;  ///< checksums of the sound rows that it replaced
};
/// By table and key.
using WrittenRows = std::map<std::string, std::map<std::string, WrittenRow>>;
/// What this connection has written and not removed again.
WrittenRows written_rows(SQLite::Database& database);
/// Those of `written` that are not in the database, a text each. A result, a ceiling and the like
/// that another process has replaced meanwhile is no loss; one that is as it was before is.
std::vector<std::string> missing_rows(SQLite::Database& database, const WrittenRows& written);

}  // namespace greta::db
