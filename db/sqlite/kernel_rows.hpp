#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <optional>
#include <string>
#include <vector>

#include "db/carried_kernel.hpp"

namespace greta::db {

// Functions that write and read users' kernels, inside the caller's transaction. They throw Error
// for a row that can't be read.

void put_kernel(SQLite::Database& database, const CarriedKernel& kernel);
std::vector<CarriedKernel> read_kernels(SQLite::Database& database);
std::optional<CarriedKernel> read_kernel(SQLite::Database& database, const std::string& name);

}  // namespace greta::db
