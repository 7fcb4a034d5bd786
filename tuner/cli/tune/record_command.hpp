#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>

#include "tuner/cli/options/tuning_options.hpp"
#include "tuner/search/limits.hpp"

namespace greta::tuner::cli {

/// Options for measuring a whole space in place of a search, as text.
struct RecordingOptions {
  std::filesystem::path file;  ///< empty: search
  bool exhaustive = false;
  std::string points;
};

/// Adds the options to the command of an operation.
void add_recording_options(CLI::App& command, RecordingOptions& options);
/// Throws CommandError if the options do not belong together.
void check_recording_options(const RecordingOptions& options, const TuningOptions& tuning);
/// Records the space of a problem within limits; returns the exit code.
int record(const Operation& operation, const Problem& problem, const SearchLimits& limits,
           const RecordingOptions& options, const TuningOptions& tuning);

}  // namespace greta::tuner::cli
