#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <vector>

#include "db/counters.hpp"

namespace greta::db {

// Functions for rows of the table counters. See rows.hpp for their conventions.

/// Replaces earlier counters of the same device, problem, configuration and cold/warm.
void put_counters(SQLite::Database& database, const StoredCounters& stored);
/// Returns all of them, by problem, device and configuration.
std::vector<StoredCounters> read_counters(SQLite::Database& database);

}  // namespace greta::db
