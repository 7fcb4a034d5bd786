#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/model/config.hpp"

namespace greta {

/// Configurations as a database stores them: as text, or packed, "#3 128 64 16", where form 3 in
/// the table config_forms has the names of variant and parameters. Shipped databases are packed.
class ConfigForms {
 public:
  /// Reads the forms there are.
  explicit ConfigForms(SQLite::Database& database);

  /// Throws Error for text of neither form.
  Config read(std::string_view stored) const;
  /// Packs; adds a form to the table where it is a new one.
  std::string pack(const Config& config);

 private:
  SQLite::Database& database_;
  std::map<std::int64_t, std::vector<std::string>> names_;  // variant, parameters
  std::map<std::string, std::int64_t> ids_;
};

}  // namespace greta
