#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <string>
#include <string_view>
#include <vector>

#include "kernels/model/embedded.hpp"

namespace greta::db {

/// One step of the schema. Step N takes a database of schema N - 1 to schema N.
struct Migration {
  int version = 0;
  std::string_view sql;
  void (*then)(SQLite::Database& database) = nullptr;  ///< what SQL can't say, after it
};

/// The files of db/schema as they were built in, in the order of their names.
const std::vector<EmbeddedFile>& schema_files();

/// All steps, first to last. 0001_init.sql is step 1.
const std::vector<Migration>& migrations();

/// Shipped databases are without this one: its columns are in their winners' rows, which are short.
constexpr std::string_view unshipped_index = "winners_by_circumstances";

/// One line for each table or index of a database of the newest schema that is not as the steps
/// make it: a name or a rule was changed, or it is not there.
std::vector<std::string> check_schema(SQLite::Database& database, bool shipped);

}  // namespace greta::db
