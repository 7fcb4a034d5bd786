#pragma once

#include <string>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::db {

/// A row that is left out of everything that is read, because it is not what was written. Its own
/// words may be damaged: they are cut short, and without control characters.
struct DamagedRow {
  std::string table;    ///< "winners"
  std::string key;      ///< its primary key: "7 (id)"
  std::string problem;  ///< what it is about, as far as that can be told
  std::string device;   ///< name
  std::string cause;    ///< "does not match its checksum"

  /// One line.
  std::string text() const;
};

/// A line for each of the first 20, and how many there are beyond.
std::vector<std::string> damage_lines(const std::vector<DamagedRow>& rows);

}  // namespace greta::db
