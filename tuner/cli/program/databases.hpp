#pragma once

#include <filesystem>
#include <string>

#include "db/tuned_db.hpp"

namespace greta::tuner::cli {

/// Throws CommandError if a database to be created has no name or its folder does not exist; the
/// default database's folder is created.
void check_new_database(const std::filesystem::path& file);
/// The same for one to which results are added, and if it exists, throws if that is not possible.
/// Creates nothing: for commands that wait for a card before they open it.
void check_results_database(const std::filesystem::path& file);
/// Opens a database for a command. Throws CommandError that names --db.
TunedDb open_database(const std::filesystem::path& file, TunedDb::Mode mode);
/// Opens a database that is only read and is not --db. Throws CommandError, which names the file.
TunedDb open_source(const std::filesystem::path& file);
/// Returns the database that an option such as "--shipped" names. Throws CommandError if it does
/// not exist or is not readable.
std::filesystem::path named_database(const std::string& option, const std::string& file);

}  // namespace greta::tuner::cli
