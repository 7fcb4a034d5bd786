#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::db {

/// Where a database of a look-up comes from. Of several winners of one problem and device, that of
/// the first level answers.
enum class DatabaseLevel {
  own,          ///< the user's
  application,  ///< an application's
  shipped       ///< GRETA's, share/greta/tuned
};

/// Returns "own", "application" or "shipped".
std::string_view to_string(DatabaseLevel level);

/// Returns the folder of the databases that GRETA ships: share/greta/tuned of the prefix (or build
/// tree) whose bin/ has the running program, or whose lib/ (or a folder in it) has the shared
/// library that contains this function; else of the prefix whose CMake package the program was
/// linked with. Returns an empty path if there is no such folder.
std::filesystem::path shipped_folder();

/// Returns the databases in a folder of shipped ones, sorted by path: ARCHITECTURE/NAME.db. Returns
/// those of one architecture if it is given. Throws Error if the folder can't be listed.
std::vector<std::filesystem::path> shipped_files(const std::filesystem::path& folder,
                                                 std::optional<std::string_view> architecture = {});

/// The databases that a look-up reads, from the highest precedence to the lowest.
struct LookupFiles {
  std::optional<std::filesystem::path> own{};        ///< the user's; must exist
  std::vector<std::filesystem::path> application{};  ///< of an application, in order; must exist
  std::filesystem::path shipped = shipped_folder();  ///< folder of GRETA's; empty: none is used

  /// Returns no databases, so that every answer is a default.
  static LookupFiles none();
};

}  // namespace greta::db
