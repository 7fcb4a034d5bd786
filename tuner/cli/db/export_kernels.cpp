#include "tuner/cli/db/export_kernels.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "kernels/chains/chains.hpp"
#include "runtime/device/system/utc.hpp"
#include "runtime/device/text/spelling.hpp"
#include "tuner/cli/program/damage_report.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/cli/program/tool.hpp"
#include "tuner/project/kernel_project.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

/// Returns whether a result's problem has each word: its operation, or the value of a dimension, a
/// type or an attribute. Attributes that a problem does not list have their default.
bool has_words(const StoredWinner& result, const std::vector<std::string>& words) {
  std::string key = " " + result.problem.key() + " ";
  std::erase(key, '"');  // a shell removes them from words that are copied
  return std::all_of(words.begin(), words.end(), [&](const std::string& word) {
    if (key.find(" " + word + " ") != std::string::npos) return true;
    const Operation* operation = known_operations().find(result.problem.op);
    if (operation == nullptr) return false;
    return std::any_of(operation->attributes.begin(), operation->attributes.end(),
                       [&](const Attribute& attribute) {
                         return word == attribute.name + "=" + attribute.fallback &&
                                key.find(" " + attribute.name + "=") == std::string::npos;
                       });
  });
}

/// Returns the results whose kernels are written, at least one.
std::vector<StoredWinner> chosen_kernels(const TunedDb& db, const KernelExport& options,
                                         const ResultFilter& filter) {
  StalenessJudge judge(known_operations());
  auto results = select_results(db, filter, judge);
  const std::string none = results.empty() ? nothing_selected(db, options.results) : std::string();
  std::erase_if(results, [&](const auto& result) { return !has_words(result, options.problem); });
  if (!results.empty()) return results;
  throw CommandError(
      tell_damage(db) ? exit_failed : exit_usage,
      fmt::format("--kernel: {}", !none.empty() ? none
                                  : options.problem.empty()
                                      ? options.results.db.string() + " has no results"
                                      : fmt::format("no result is of {}; greta-db list "
                                                    "shows what there is",
                                                    fmt::join(options.problem, " "))));
}

}  // namespace

void check_kernel_export(const KernelExport& options) {
  if (options.folder.empty()) throw CommandError(exit_usage, "--kernel: needs a folder");
  if (!options.problem.empty() && known_operations().find(options.problem.front()) == nullptr) {
    std::vector<std::string> names;
    for (const Operation& entry : known_operations()) names.push_back(entry.name);
    throw CommandError(
        exit_usage,
        fmt::format("{}: the first word of a problem is its operation, which {}",
                    options.problem.front(), must_be_one_of(options.problem.front(), names)));
  }
  check_folder("--kernel", options.folder);
}

int export_kernels(const TunedDb& db, const KernelExport& options, const ResultFilter& filter) {
  const auto results = chosen_kernels(db, options, filter);
  if (auto free = check_project_folder(options.folder, results.size() == 1 && options.force);
      !free && results.size() > 1) {
    throw CommandError(exit_usage,
                       fmt::format("--kernel {}; {} results are selected, each for a folder in it",
                                   free.failure().message, results.size()));
  }
  std::vector<std::filesystem::path> folders;
  std::set<std::filesystem::path> taken;
  for (const auto& result : results) {
    const auto name = file_name(fmt::format("{} {} {}{}", result.problem.key(), result.device_id,
                                            result.device.name, result.winner.cold ? "" : " warm"));
    folders.push_back(results.size() == 1 ? options.folder : options.folder / name);
    for (int again = 2; !taken.insert(folders.back()).second; ++again) {
      folders.back() = options.folder / fmt::format("{}-{}", name, again);
    }
    if (auto free = check_project_folder(folders.back(), options.force); !free) {
      throw CommandError(exit_usage, "--kernel " + free.failure().message);
    }
  }
  int code = exit_done;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto written = write_kernel_project(known_operations(), results[i], {}, folders[i]);
    if (!written) {
      tell(fmt::format("{}: {}", results[i].problem.key(), written.failure().message));
      print_text(stderr, written.failure().log);
      code = exit_failed;
      continue;
    }
    print("{}: {} on {}: {}, {}\n", folders[i].string(), results[i].problem.key(),
          results[i].device.name, fmt::join(written->kernels, ", "),
          format_bytes(static_cast<double>(written->bytes)));
  }
  return code;
}

std::string file_name(const std::string& text) {
  std::string name;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain || (!name.empty() && name.back() != '-')) name += plain ? c : '-';
  }
  if (name.ends_with('-')) name.pop_back();
  return name;
}

std::vector<CarriedKernel> carried_kernels(const std::vector<StoredWinner>& results) {
  std::set<std::string> wanted;
  for (const StoredWinner& result : results) {
    if (with_chains(Catalog::built_in()).find(result.problem.op) == nullptr) {
      wanted.insert(result.problem.op);
    }
  }
  std::vector<CarriedKernel> kernels;
  for (const KernelFile& file : described_kernels()) {
    if (wanted.erase(file.description.name) == 0) continue;
    CarriedKernel kernel{file.description.name, file.path.filename().string(), file.files,
                         utc_now()};
    kernel.files.insert(file.own.begin(), file.own.end());
    kernels.push_back(std::move(kernel));
  }
  if (wanted.empty()) return kernels;
  throw CommandError(exit_usage, fmt::format("--with-kernels: {} is not described in the folders "
                                             "of --kernels",
                                             *wanted.begin()));
}

}  // namespace greta::tuner::cli
