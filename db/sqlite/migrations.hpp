#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <string>
#include <string_view>
#include <vector>

#include "kernels/model/embedded.hpp"

namespace greta::db {

/// One step of the schema. Step N converts a database from schema N - 1 to schema N.
struct Migration {
  int version = 0;
  std::string_view sql;
  void (*then)(SQLite::Database& database) = nullptr;  ///< runs after the SQL
};

/// Returns the files of db/schema that were built in, in the order of their names.
const std::vector<EmbeddedFile>& schema_files();

/// Returns all steps, first to last. 0001_init.sql is step 1.
const std::vector<Migration>& migrations();

/// An index that shipped databases lack: their winners' rows are short and contain its columns.
constexpr std::string_view unshipped_index = "winners_by_circumstances";

/// Returns one line for each table or index that differs from the migrations' result: a name or a
/// constraint was changed, or it is missing.
std::vector<std::string> check_schema(SQLite::Database& database, bool shipped);

}  // namespace greta::db
