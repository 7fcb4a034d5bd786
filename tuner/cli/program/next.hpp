#pragma once

#include <filesystem>
#include <string>

#include "tuner/report/next_steps.hpp"

namespace greta::tuner::cli {

/// Returns the command line that tunes a problem: "greta-tune gemm --m 512 --n 512 --k 64
/// --dtype f16 --device vulkan:0 --budget 5m".
std::string tune_command(const Problem& problem, const std::string& device,
                         const std::filesystem::path& database);

/// Returns rows with the problems of a database that would gain most, each with the command to tune
/// it. Empty if no result has anything to gain.
std::string next_text(const TunedDb& db);

}  // namespace greta::tuner::cli
