#pragma once

#include "db/sqlite/connection.hpp"
#include "db/tuned_db.hpp"

namespace greta::db {

/// The state of TunedDb, for the files that implement it.
struct TunedDb::Impl {
  Connection connection;
};

}  // namespace greta::db
