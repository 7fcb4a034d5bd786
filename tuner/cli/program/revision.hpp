#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "tuner/report/csv.hpp"

namespace greta::tuner::cli {

/// Returns the commit that this program was built from, "6544f00c7990", with "-dirty" after it if
/// files differed from the commit. Empty if it was not built in a repository.
std::string_view revision();

/// Appends results that this program measured to a CSV file (append_csv()), with its revision.
Result<void> export_csv(const std::filesystem::path& file, std::vector<MeasuredResult> results);

}  // namespace greta::tuner::cli
