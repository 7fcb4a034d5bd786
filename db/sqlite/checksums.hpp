#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <string>
#include <vector>

namespace greta {

// Every row carries a hash of its other columns. SQLite's own check sees a damaged tree, but not a
// digit that became another one.

/// Gives the connection the SQL function that the others below use: a hash over names and values;
/// a NULL counts as no column, so that a later schema may add one.
void add_checksum_function(SQLite::Database& database);

/// Stores the checksums of the rows of `table` that meet `condition`, in SQL.
void seal(SQLite::Database& database, const std::string& table, const std::string& condition);
/// Stores all that are missing.
void seal_missing(SQLite::Database& database);

/// The tables whose rows carry checksums, by name.
std::vector<std::string> sealed_tables(SQLite::Database& database);

/// One line for each row that does not match its checksum or has none, up to `most`; the last line
/// says how many there are beyond.
std::vector<std::string> broken_rows(SQLite::Database& database, std::size_t most);

/// The tables' row counts and sums of checksums, stored once a shipped database is complete.
void write_manifest(SQLite::Database& database);
/// One line for each table that is not as the manifest says; none where there is no manifest.
std::vector<std::string> check_manifest(SQLite::Database& database);

}  // namespace greta
