#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <optional>
#include <string>
#include <vector>

#include "db/carried_binary.hpp"

namespace greta::db {

// Functions for rows of the table binaries. See rows.hpp for their conventions.

void put_binary(SQLite::Database& database, const CarriedBinary& binary);

/// Returns the binary of a kernel for a target, or nothing if there is none. Throws Error if its
/// row is damaged, or its hash is not that of its contents.
std::optional<CarriedBinary> read_binary(SQLite::Database& database, const std::string& content,
                                         const std::string& target);

/// Returns the totals of all sound rows, by target.
std::vector<BinaryTotals> read_binary_totals(SQLite::Database& database);

}  // namespace greta::db
