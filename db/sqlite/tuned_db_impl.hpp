#pragma once

#include "db/sqlite/connection.hpp"
#include "db/tuned_db.hpp"

namespace greta::db {

/// For the files that implement TunedDb.
struct TunedDb::Impl {
  Connection connection;
};

}  // namespace greta::db
