#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner::cli {

/// The files that a report shows.
struct ReportFiles {
  std::vector<std::filesystem::path> databases{};
  std::vector<std::filesystem::path> recordings{};  ///< of greta-tune --record
  std::vector<std::filesystem::path> baselines{};   ///< CSV files
  std::vector<std::filesystem::path> traces{};      ///< of greta-run --trace
};

/// Sorts files by their content: databases of SQLite, recordings, other JSON objects, and CSV
/// files. A file that is given twice is taken once. Throws CommandError for one that can't be read
/// or is none of these.
ReportFiles report_files(const std::vector<std::string>& files);

/// Throws CommandError that names the option if this build has no page, or if the folder of the
/// file can't be written, or if the file exists and is no page, or is one of the files that the
/// command reads or writes. Call it before work whose report is to be written.
void check_report(const std::string& option, const std::filesystem::path& out,
                  const std::vector<std::filesystem::path>& inputs = {});

/// Names on standard error the damaged rows of databases, which the page lacks. Returns `code`, or
/// exit_failed if there are any.
int end_of_report(const ReportFiles& files, int code);

/// Returns the page. Throws CommandError.
std::string report_page(const ReportFiles& files);

/// Returns the page's data as JSON that may be put into it. Throws CommandError.
std::string report_data(const ReportFiles& files);

/// Writes the page; the file appears complete or not at all, and replaces an existing one. Throws
/// CommandError, also if the existing one is no page.
void write_report(const ReportFiles& files, const std::filesystem::path& out);

}  // namespace greta::tuner::cli
