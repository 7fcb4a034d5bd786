#include "tuner/cli/db/contribute.hpp"

#include <fmt/format.h>

#include "db/contribution.hpp"
#include "runtime/device/system/input_file.hpp"
#include "tuner/cli/options/result_options.hpp"
#include "tuner/cli/program/damage_report.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/program/machine_names.hpp"
#include "tuner/cli/program/tool.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

constexpr std::uint64_t most_contribution_bytes = std::uint64_t{256} << 20;

/// Writes the file unless a name of this machine or its user occurs in it.
void write_without_names(const Contents& contents, const std::filesystem::path& file,
                         const PrivateNames& names) {
  auto draft = file;
  draft += ".draft";
  TunedDb::ship(contents, draft);
  const auto bytes = read_file(draft, most_contribution_bytes);
  const bool named = bytes && names.in(*bytes);
  std::error_code error;
  if (bytes && !named) {
    std::filesystem::rename(draft, file, error);
    if (!error) return;
  }
  std::error_code ignored;
  std::filesystem::remove(draft, ignored);
  throw CommandError(
      exit_failed,
      fmt::format("--contribute {}: nothing was written: {}", file.string(),
                  !bytes  ? bytes.failure().message
                  : named ? "a name of this machine, its user or a home folder would be in it"
                          : error.message()));
}

}  // namespace

void contribute(const TunedDb& db, const ResultFilter& filter, const std::filesystem::path& file) {
  StalenessJudge judge(known_operations());
  Contents all = db.contents();
  check_device_is_known(db, filter);
  std::erase_if(all.results,
                [&](const StoredWinner& result) { return !filter.matches(result, judge); });
  const PrivateNames names = names_of_machine();
  const Contribution given =
      contribution(all, judge, [&](std::string_view text) { return names.in(text); });
  for (const auto& line : given.refused) tell("omitted: " + line);
  if (given.contents.results.empty()) {
    throw CommandError(tell_damage(db) ? exit_failed : exit_usage,
                       fmt::format("--contribute {}: nothing was written: {}", file.string(),
                                   given.refused.empty() ? "no result is selected"
                                                         : "no result can be given to others"));
  }
  write_without_names(given.contents, file, names);
  print("{}: {} of {}; {} omitted\n", file.string(),
        format_count(static_cast<std::int64_t>(given.contents.results.size()), "result"),
        format_count(static_cast<std::int64_t>(given.contents.devices.size()), "device"),
        given.refused.size());
}

}  // namespace greta::tuner::cli
