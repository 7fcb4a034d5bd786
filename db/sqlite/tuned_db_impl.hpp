#pragma once

#include <optional>

#include "db/sqlite/connection.hpp"
#include "db/sqlite/rows.hpp"
#include "db/sqlite/run_locks.hpp"
#include "db/tuned_db.hpp"

namespace greta::db {

/// The state of TunedDb, for the files that implement it.
struct TunedDb::Impl {
  Connection connection;
  RunLocks runs;
  std::optional<TrialWriter> trials{};  ///< made with the first trial, ends before the connection
};

}  // namespace greta::db
