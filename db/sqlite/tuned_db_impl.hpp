#pragma once

#include "db/sqlite/connection.hpp"
#include "db/sqlite/run_locks.hpp"
#include "db/tuned_db.hpp"

namespace greta::db {

/// The state of TunedDb, for the files that implement it.
struct TunedDb::Impl {
  Connection connection;
  RunLocks runs;
};

}  // namespace greta::db
