#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "db/filter.hpp"
#include "tuner/cli/paths.hpp"

namespace greta::tuner::cli {

/// Which results of a database a command is about, as options say it.
struct ResultOptions {
  Catalog catalog = Catalog::built_in();
  std::filesystem::path db = default_database();
  std::string op, dtype, out_dtype, dims, variant, device, driver;
  bool cold = false, warm = false, stale = false, fresh = false;
};

/// Adds --db and the filters to a subcommand. `options` must live as long as it does.
void add_result_options(CLI::App& command, ResultOptions& options);

/// Checks every value; throws CommandError that names the option, the value and what is allowed.
ResultFilter read_filter(const ResultOptions& options);

/// Throws CommandError where no device of the database answers to --device.
void check_device_is_known(const TunedDb& db, const ResultFilter& filter);

/// Opens a database that must exist for writing, and so brings an older schema up to date. Throws
/// CommandError.
TunedDb open_existing(const std::filesystem::path& file);

/// The sessions that match, with their devices.
std::vector<std::pair<StoredSession, DeviceInfo>> select_sessions(const TunedDb& db,
                                                                  const ResultFilter& filter);

/// The results that match, of all circumstances.
std::vector<StoredWinner> select_results(const TunedDb& db, const ResultFilter& filter,
                                         StalenessJudge& judge);

}  // namespace greta::tuner::cli
