#pragma once

#include <filesystem>

#include "db/filter.hpp"
#include "db/tuned_db.hpp"

namespace greta::tuner::cli {

/// Writes the selected results that can be given to others to a file (greta-db export --contribute)
/// and names the others with the reason. Throws CommandError if there is none.
void contribute(const TunedDb& db, const ResultFilter& filter, const std::filesystem::path& file);

}  // namespace greta::tuner::cli
