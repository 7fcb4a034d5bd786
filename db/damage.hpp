#pragma once

#include <string>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::db {

/// A row that no query returns because it is not as it was written. Its texts may be damaged
/// themselves, so they are shortened, and control characters are removed.
struct DamagedRow {
  std::string table;    ///< "winners"
  std::string key;      ///< primary key: "7 (id)"
  std::string problem;  ///< the row's problem, as far as it is known
  std::string device;   ///< name of the device
  std::string cause;    ///< "does not match its checksum"

  /// Returns a one-line description.
  std::string text() const;
};

/// Returns a line for each of the first 20 rows, and the number of further ones.
std::vector<std::string> damage_lines(const std::vector<DamagedRow>& rows);

}  // namespace greta::db
