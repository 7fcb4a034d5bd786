#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner::cli {

/// What greta-bench was asked for, as text where it is read later.
struct BenchOptions {
  std::string preset = "smoke";
  std::string device = "auto";
  std::filesystem::path db;
  std::string shipped;         ///< a database below `db`; empty: none
  std::string filter;          ///< a regular expression on benchmarks' names; empty: all
  std::string repeat;          ///< empty: the preset's
  std::string timeout = "30";  ///< s, of one launch
  double settle_s = 120;       ///< s, at most, for more samples of kernels that scatter
  std::string flush;           ///< MiB; empty: by the device's table
  std::string seed;            ///< empty: random
  bool exporting = false;
  bool resume = false;          ///< leave out what the exported file has
  double limit_s = 0;           ///< after which no more benchmarks begin; 0: none
  std::string export_file;      ///< where `exporting`; empty: by device, date and preset
  std::filesystem::path trace;  ///< empty: none
  bool untuned = false;         ///< defaults instead of the database's winners
  bool both = false;            ///< defaults as well
  bool compute_only = false;
  bool warm = false;
  bool no_lock = false;
  bool allow_unsafe = false;
  std::vector<std::string> google_flags;
};

}  // namespace greta::tuner::cli
