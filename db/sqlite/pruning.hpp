#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include "db/tuned_db.hpp"

namespace greta::db {

/// Removes what is asked for and then what nothing refers to any more.
Pruned remove_rows(SQLite::Database& database, const PruneRequest& request);

}  // namespace greta::db
