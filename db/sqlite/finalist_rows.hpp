#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <vector>

#include "db/finalist.hpp"

namespace greta::db {

// Functions for rows of the table finalists. See rows.hpp for their conventions.

void put_finalists(SQLite::Database& database, std::int64_t session,
                   const std::vector<Finalist>& finalists);
/// Returns the finalists of a session, in the order in which they were stored.
std::vector<Finalist> read_finalists(SQLite::Database& database, std::int64_t session);

}  // namespace greta::db
