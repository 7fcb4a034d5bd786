#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/model/config.hpp"

namespace greta::db {

/// Configurations as a database stores them: as text, or packed, "#3 128 64 16", where form 3 in
/// the table config_forms has the names of variant and parameters; or as the difference from
/// another one, "~0 256 2 32": its first and third values are these. Shipped databases are packed.
class ConfigForms {
 public:
  /// Reads the forms there are.
  explicit ConfigForms(SQLite::Database& database);

  /// `base`: what a difference is from. Throws Error for text of no form.
  Config read(std::string_view stored, const Config* base = nullptr) const;
  /// Packs, as a difference where both have the same names; adds a form to the table where it is a
  /// new one.
  std::string pack(const Config& config, const Config* base = nullptr);

  /// A text that many shipped rows have in common, kept in the same table: "#7" stands for it.
  std::string share(const std::string& text);
  /// The inverse; throws Error for what stands for no text.
  std::string expand(const std::string& stored) const;

 private:
  SQLite::Database& database_;
  std::int64_t add(const std::string& text);

  std::map<std::int64_t, std::string> texts_;
  std::map<std::string, std::int64_t> ids_;
};

}  // namespace greta::db
