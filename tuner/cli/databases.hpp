#pragma once

#include <filesystem>
#include <string>

#include "db/tuned_db.hpp"

namespace greta::tuner::cli {

/// Opens a database for a command; throws CommandError that names --db.
TunedDb open_database(const std::filesystem::path& file, TunedDb::Mode mode);
/// The database that an option names ("--shipped"), which must be there and be readable. Throws
/// CommandError.
std::filesystem::path named_database(const std::string& option, const std::string& file);
/// Refuses what --shipped names, unless it is nothing or such a database.
void check_shipped(const std::string& file);

}  // namespace greta::tuner::cli
