#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "db/lookup/lookup_files.hpp"

namespace greta::tuner::cli {

/// The databases below the user's own: --shipped and --no-shipped.
struct KnownDatabases {
  std::vector<std::string> application;  ///< in order of precedence
  bool no_shipped = false;
};

/// Adds the options, in a group of --help if it is given.
void add_known_databases(CLI::App& command, KnownDatabases& known, const std::string& group = {});
/// Returns the databases, without one of the user. Throws CommandError if one that --shipped names
/// can't be opened.
LookupFiles known_files(const KnownDatabases& known);

}  // namespace greta::tuner::cli
