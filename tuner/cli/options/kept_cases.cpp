#include "tuner/cli/options/kept_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/options/verified_kernels.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/cli/program/terminal.hpp"
#include "tuner/cli/program/tool.hpp"
#include "tuner/evaluate/sanitized_case.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

namespace fs = std::filesystem;

/// Returns the folders with a case among a folder's own, sorted; with the time of the last write.
std::set<std::pair<fs::path, fs::file_time_type>> cases_in(const fs::path& folder) {
  std::set<std::pair<fs::path, fs::file_time_type>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const fs::path file = entry.path() / failure_file;
    const auto written = fs::last_write_time(file, error);
    if (!error) found.emplace(entry.path(), written);
  }
  return found;
}

/// Returns the description of a case's kernel that this program has read, or null.
const KernelFile* known_description(const fs::path& folder) {
  const std::string name = folder.filename().string();
  const auto& known = described_kernels();
  const auto found = std::find_if(known.begin(), known.end(), [&](const KernelFile& file) {
    return name.starts_with(file.description.name + "-");
  });
  return found == known.end() ? nullptr : &*found;
}

/// Adds the description of a described kernel's case, if this program has read it.
void complete(const fs::path& folder) {
  const KernelFile* const file = known_description(folder);
  if (file == nullptr) return;
  auto files = file->files;
  files.insert(file->own.begin(), file->own.end());
  add_description(folder, file->path.filename().string(), files, last_verified(*file));
}

}  // namespace

CLI::Option* add_keep_failed(CLI::App& command, fs::path& folder) {
  return command
      .add_option("--keep-failed", folder,
                  "Keep candidates with wrong results as cases in this folder, and diagnose them "
                  "(docs/diagnose.md); those of kernels of your own are always kept")
      ->type_name("DIR");
}

fs::path folder_of_failures(const fs::path& given, bool described) {
  const fs::path folder = !given.empty() ? given
                          : described    ? default_cache_directory() / "failed"
                                         : fs::path();
  if (folder.empty()) return folder;
  std::error_code error;
  fs::create_directories(folder, error);
  if (fs::is_directory(folder, error)) return fs::absolute(folder);
  throw CommandError(exit_usage,
                     fmt::format("--keep-failed {}: can't be made a folder", folder.string()));
}

std::vector<fs::path> kept_cases(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder, error)) {
    throw CommandError(exit_usage, fmt::format("{}: No such file or directory", folder.string()));
  }
  if (fs::exists(folder / failure_file, error)) return {folder};
  std::vector<fs::path> folders;
  for (const auto& [path, written] : cases_in(folder)) folders.push_back(path);
  if (!folders.empty()) return folders;
  throw CommandError(exit_usage, fmt::format("{}: neither is a case with a {} nor contains one",
                                             folder.string(), failure_file));
}

Result<Diagnosis> diagnose_kept(const fs::path& folder, const DiagnosisOptions& options) {
  const auto description = description_of(folder);
  if (!description) return description.failure();
  if (!description->empty() && known_description(folder) == nullptr) add_described(*description);
  return diagnose_folder(operations_in_use(), folder, options);
}

KeptCases::KeptCases(fs::path folder) : folder_(std::move(folder)) {
  if (!folder_.empty()) before_ = cases_in(folder_);
}

std::vector<Diagnosis> KeptCases::tell() {
  std::vector<Diagnosis> kept;
  if (folder_.empty()) return kept;
  for (const auto& one : cases_in(folder_)) {
    if (before_.contains(one)) continue;
    complete(one.first);
    auto diagnosis = diagnose_kept(one.first);
    if (diagnosis && !diagnosis->is_precise()) {
      add_sanitizer_reports(one.first, operations_in_use(), worker_command(),
                            default_cache_directory());
      diagnosis = diagnose_kept(one.first);
    }
    tuner::tell(fmt::format("kept {}: {}", one.first.string(),
                            diagnosis ? cause_line(*diagnosis) : diagnosis.failure().message));
    if (diagnosis) kept.push_back(*std::move(diagnosis));
  }
  return kept;
}

}  // namespace greta::tuner::cli
