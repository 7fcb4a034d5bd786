#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/model/config.hpp"

namespace greta::db {

/// Reads and writes configurations in the forms that a database stores: as text; packed, as "#3 128
/// 64 16", where form 3 in the table config_forms has the names of variant and parameters; or as
/// the difference from another one, as "~0 256 2 32", which replaces its first and third values.
/// Shipped databases are packed.
class ConfigForms {
 public:
  /// Reads the existing forms.
  explicit ConfigForms(SQLite::Database& database);

  /// Reads a stored configuration. A difference is relative to `base`. Throws Error for text of no
  /// known form.
  Config read(std::string_view stored, const Config* base = nullptr) const;
  /// Packs a configuration, as a difference if both have the same names. Adds a new form to the
  /// table.
  std::string pack(const Config& config, const Config* base = nullptr);

  /// Returns a reference such as "#7" to a text that many shipped rows share. It is kept in the
  /// same table.
  std::string share(const std::string& text);
  /// The inverse. Throws Error for an unknown reference.
  std::string expand(const std::string& stored) const;

 private:
  SQLite::Database& database_;
  std::int64_t add(const std::string& text);

  std::map<std::int64_t, std::string> texts_;
  std::map<std::string, std::int64_t> ids_;
};

}  // namespace greta::db
