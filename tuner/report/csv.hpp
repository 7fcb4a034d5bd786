#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tuner/measure/measured_result.hpp"

namespace greta::tuner {

/// Maximum size in bytes of a CSV file that is read or appended to.
inline constexpr std::uint64_t most_csv_bytes = std::uint64_t{256} << 20;

// Results as rows of GRETA's CSV files, with the same columns for tuning and benchmarks
// (docs/csv.md). Text that does not apply and numbers that are 0 become empty fields.

/// Returns the first line of every CSV file.
std::string csv_header();
/// Returns the names of the columns and a result's fields, with quotes where they are needed.
std::vector<std::pair<std::string_view, std::string>> csv_fields(const MeasuredResult& result);
/// Returns a text as a field, in quotes if it needs them.
std::string csv_quoted(const std::string& text);
/// Returns a result as a line. Samples have five significant digits, other numbers six.
std::string csv_line(const MeasuredResult& result);

/// Reads the results of a file and updates renamed attributes. A failure is one line with the file
/// and, for a malformed line, its number. The last columns may be missing in files of older
/// versions.
Result<std::vector<MeasuredResult>> read_csv(const std::filesystem::path& file);

/// Appends results to a file, with a header if it is new. Creates its folder.
Result<void> append_csv(const std::filesystem::path& file,
                        const std::vector<MeasuredResult>& results);

}  // namespace greta::tuner
