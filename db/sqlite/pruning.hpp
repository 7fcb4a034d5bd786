#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include "db/tuned_db.hpp"

namespace greta::db {

/// Removes the requested rows, and then rows without any remaining reference.
Pruned remove_rows(SQLite::Database& database, const PruneRequest& request);

}  // namespace greta::db
