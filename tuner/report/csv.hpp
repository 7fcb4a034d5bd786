#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tuner/measure/measured_result.hpp"

namespace greta::tuner {

/// Bytes that a CSV file may have that is read or continued.
inline constexpr std::uint64_t most_csv_bytes = std::uint64_t{256} << 20;

// Results as rows of GRETA's CSV files, the same for tuning and benchmarks; columns in docs/csv.md.
// Text that does not apply is empty, and so is a number that is 0.

/// The first line of every CSV file.
std::string csv_header();
/// A result as a line. Samples have five digits, other numbers six.
std::string csv_line(const MeasuredResult& result);

/// The results in a file, with today's names of attributes. A failure is one line that names the
/// file, and the line in it where one is wrong. Columns that older versions did not have, the last
/// ones, may be missing.
Result<std::vector<MeasuredResult>> read_csv(const std::filesystem::path& file);

/// Appends results to a file, after the header where it is new. Its folder is created.
Result<void> append_csv(const std::filesystem::path& file,
                        const std::vector<MeasuredResult>& results);

}  // namespace greta::tuner
