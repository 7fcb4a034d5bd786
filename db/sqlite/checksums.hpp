#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::db {

// Every row carries a hash of its other columns. SQLite's own check sees a damaged tree, but not a
// digit that became another one. A row is sound where its checksum is there and right.

/// Gives the connection the SQL function that the others below use: a hash over names and values;
/// a NULL counts as no column, so that a later schema may add one.
void add_checksum_function(SQLite::Database& database);

/// GRETA's tables whose rows carry checksums, by name. Tables of others are not among them.
std::vector<std::string> sealed_tables(SQLite::Database& database);
/// The columns of a table: those of its primary key, "rowid" where it has none, or all but the
/// checksum.
std::vector<std::string> key_columns(SQLite::Database& database, const std::string& table);
std::vector<std::string> content_columns(SQLite::Database& database, const std::string& table);

/// SQL for what a row's checksum must be; `value` gives the SQL for a column.
using ColumnValue = std::function<std::string(const std::string& column)>;
std::string checksum_of(SQLite::Database& database, const std::string& table,
                        const ColumnValue& value);
/// SQL that holds for sound rows; `row` stands before the columns: "OLD.".
std::string is_sound(SQLite::Database& database, const std::string& table,
                     const std::string& row = "");

/// Gives every row its first checksum. Only for the schema's step that adds checksums: whatever a
/// row is at that time counts as sound.
void seal_for_the_first_time(SQLite::Database& database);

/// The tables' row counts and sums of checksums, stored once a shipped database is complete.
void write_manifest(SQLite::Database& database);
/// One line for each table that is not as the manifest says; none where there is no manifest.
std::vector<std::string> check_manifest(SQLite::Database& database);

}  // namespace greta::db
