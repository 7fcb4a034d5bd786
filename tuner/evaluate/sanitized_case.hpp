#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kernels/catalog.hpp"

namespace greta::tuner {

/// Runs the candidate of a failed case of hip-host again, under the race detector and under
/// AddressSanitizer, and adds what they report to the case: a missing barrier or an access out of
/// bounds may give the same wrong results in every run. Does nothing for cases of other devices,
/// and where the C++ compiler has no sanitizers. `worker` starts a worker process of this program.
void add_sanitizer_reports(const std::filesystem::path& folder, const Catalog& catalog,
                           const std::vector<std::string>& worker,
                           const std::filesystem::path& cache_directory);

}  // namespace greta::tuner
