#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::db {

// Every row contains a hash of its other columns. SQLite's own check detects a damaged tree, but
// not a changed digit. A row is sound if its checksum exists and is correct.

/// Adds to the connection the SQL function that the functions below use, which hashes names and
/// values. A NULL counts as an absent column, so that a later schema may add one.
void add_checksum_function(SQLite::Database& database);

/// Returns the names of GRETA's tables whose rows have checksums. Tables of other programs are not
/// included.
std::vector<std::string> sealed_tables(SQLite::Database& database);
/// Return the columns of a table: those of its primary key, or "rowid" if it has none; and all but
/// the checksum.
std::vector<std::string> key_columns(SQLite::Database& database, const std::string& table);
std::vector<std::string> content_columns(SQLite::Database& database, const std::string& table);

/// Returns SQL for a row's correct checksum. `value` returns the SQL for a column.
using ColumnValue = std::function<std::string(const std::string& column)>;
std::string checksum_of(SQLite::Database& database, const std::string& table,
                        const ColumnValue& value);
/// Returns an SQL condition that is true for sound rows. `row` is a prefix of the columns: "OLD.".
std::string is_sound(SQLite::Database& database, const std::string& table,
                     const std::string& row = "");

/// Updates the sound rows for which `where` holds, and their checksums. `changes` maps columns to
/// SQL for their new values. It is for migrations, which run without the triggers of guard.hpp.
void rewrite_sound(SQLite::Database& database, const std::string& table, const std::string& where,
                   const std::map<std::string, std::string>& changes);

/// Sets every row's first checksum. It is only for the migration that adds checksums: every row
/// counts as sound at that time.
void seal_for_the_first_time(SQLite::Database& database);

/// Stores row counts and sums of checksums of the tables that the manifest does not list, once a
/// shipped database is complete. Tables of `except` get no line.
void write_manifest(SQLite::Database& database, const std::set<std::string>& except = {});
/// Removes the manifest's lines that are correct. Before a migration, so that write_manifest() can
/// write them again after it; lines that are wrong stay wrong. Returns the tables whose line was
/// wrong or missing; none if there is no manifest.
std::set<std::string> remove_correct_lines_of_manifest(SQLite::Database& database);
/// Returns one line for each table that does not match the manifest; none if there is no manifest.
std::vector<std::string> check_manifest(SQLite::Database& database);

}  // namespace greta::db
