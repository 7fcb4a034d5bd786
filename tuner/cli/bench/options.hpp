#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tuner/bench/preset.hpp"
#include "tuner/cli/options/database_options.hpp"

namespace greta::tuner::cli {

/// The options of greta-bench. Those that are parsed later are text.
struct BenchOptions {
  std::string preset = "smoke";
  std::optional<PresetProblem> problem;  ///< measured in place of the preset
  std::vector<PresetProblem> own;        ///< the same problem of kernels of the user's own
  bool each_backend = false;             ///< on all devices of the same card
  std::string device = "auto";
  std::filesystem::path db;
  KnownDatabases known;            ///< below `db`
  std::string filter;              ///< regular expression on benchmark names; empty: all
  std::string repeat;              ///< empty: the preset's
  std::string timeout = "30";      ///< deadline of one launch, in seconds
  double settle_s = 120;           ///< time limit for more samples of kernels with wide intervals
  std::string flush;               ///< MiB; empty: chosen for the device
  std::string seed;                ///< empty: random
  std::string processes = "auto";  ///< what is measured in processes of its own
  bool exporting = false;
  bool resume = false;           ///< skip what the exported file contains
  double limit_s = 0;            ///< no benchmark starts after this time; 0: no limit
  std::string export_file;       ///< if `exporting`; empty: by device, date and preset
  std::filesystem::path trace;   ///< empty: none
  std::filesystem::path report;  ///< the page to write at the end; empty: none
  bool untuned = false;          ///< defaults instead of the database's winners
  bool both = false;             ///< defaults in addition
  bool compute_only = false;
  bool warm = false;
  bool counters = false;  ///< also count what each kernel does on the hardware
  bool no_lock = false;
  bool json = false;  ///< results as JSON in place of the table
  bool allow_unsafe = false;
  std::vector<std::string> google_flags;
};

/// Adds the options of a preset's run.
void add_options(CLI::App& app, BenchOptions& options);
/// Adds those of them that a run of one problem has as well.
void add_run_options(CLI::App& app, BenchOptions& options);

}  // namespace greta::tuner::cli
