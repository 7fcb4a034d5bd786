#pragma once

#include <string_view>
#include <vector>

#include "kernels/model/embedded.hpp"

namespace greta {

/// One step of the schema. Step N takes a database of schema N - 1 to schema N.
struct Migration {
  int version = 0;
  std::string_view sql;
};

/// The files of db/schema as they were built in, in the order of their names.
const std::vector<EmbeddedFile>& schema_files();

/// All steps, first to last. 0001_init.sql is step 1.
const std::vector<Migration>& migrations();

}  // namespace greta
