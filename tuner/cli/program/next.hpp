#pragma once

#include <filesystem>
#include <string>

#include "tuner/report/next_steps.hpp"

namespace greta::tuner::cli {

/// Returns the command line that tunes a problem, with quotes for a shell: "greta-tune gemm --m 512
/// --n 512 --k 64 --dtype f16 --device vulkan:0 --budget 5m".
std::string tune_command(const Problem& problem, const std::string& device, bool cold,
                         const std::filesystem::path& database);

/// Returns the same for a problem of a database that is never written: results go to the user's own
/// database, and the search knows those of `shipped`.
std::string tune_command_with_shipped(const Problem& problem, const std::string& device, bool cold,
                                      const std::filesystem::path& shipped);

/// Returns rows with the problems of a database that would gain most, each with the command to tune
/// it, except for those in `done`. Empty if no result has anything to gain.
std::string next_text(const TunedDb& db, const std::vector<Problem>& done = {});

}  // namespace greta::tuner::cli
