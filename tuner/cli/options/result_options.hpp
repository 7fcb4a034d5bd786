#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "db/filter.hpp"
#include "tuner/cli/program/paths.hpp"

namespace greta::tuner::cli {

/// Options that select results of a database.
struct ResultOptions {
  std::filesystem::path db = default_database();
  std::string op, dtype, out_dtype, dims, variant, device, driver;
  bool cold = false, warm = false, stale = false, fresh = false;
};

/// Adds --db and the filters to a subcommand. `options` must outlive the subcommand.
void add_result_options(CLI::App& command, ResultOptions& options);

/// Validates every value. Throws CommandError that names the option, the value and the allowed
/// values.
ResultFilter read_filter(const ResultOptions& options);

/// Throws CommandError if no device of the database matches --device.
void check_device_is_known(const TunedDb& db, const ResultFilter& filter);

/// Returns why no result was selected: the options, and which operations, variants and drivers the
/// results have. Empty if the database has no results, or without options.
std::string nothing_selected(const TunedDb& db, const ResultOptions& options);

/// Opens an existing database for writing, which migrates an older schema. Throws CommandError.
TunedDb open_existing(const std::filesystem::path& file);

/// Returns the matching sessions with their devices.
std::vector<std::pair<StoredSession, DeviceInfo>> select_sessions(const TunedDb& db,
                                                                  const ResultFilter& filter);

/// Returns the matching results, for all drivers and compilers.
std::vector<StoredWinner> select_results(const TunedDb& db, const ResultFilter& filter,
                                         StalenessJudge& judge);

}  // namespace greta::tuner::cli
