#pragma once

#include <map>
#include <string>

#include "runtime/device/layers.hpp"

namespace greta::db {

/// A user's kernel that a database carries: the file that describes it (docs/your-kernel.md), and
/// all files that this one names.
struct CarriedKernel {
  std::string name;                          ///< of the operation
  std::string description;                   ///< name of the file that describes it
  std::map<std::string, std::string> files;  ///< contents by names, relative to that file
  std::string carried_utc;

  bool operator==(const CarriedKernel&) const = default;
};

}  // namespace greta::db
