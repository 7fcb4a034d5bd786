#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/catalog.hpp"
#include "tuner/cli/options/tuning_options.hpp"
#include "tuner/tuning/distribution.hpp"

namespace greta::tuner::cli {

/// A call of which GRETA has no problem.
struct NotTuned {
  std::string file, call, reason;
  std::size_t line = 0;
  std::uint64_t count = 0;
};

/// What applications ran, as captures have it: of runtimes (greta-run --capture, greta.torch), and
/// of libgreta-capture.so.
struct CapturedWork {
  std::vector<WeightedProblem> problems;  ///< each once
  std::vector<NotTuned> not_tuned;
  /// Devices on which the times of problems were measured: name and fingerprint.
  std::vector<std::pair<std::string, std::string>> devices;
};

/// Reads and adds up captures. `verb` is what is done with their problems: "tune". Says on standard
/// error what a capture of libgreta-capture.so holds unless `quiet`, and in any case what has no
/// problem. Throws CommandError for a file that can't be read or is damaged, or if there are no
/// problems.
CapturedWork read_captured(const std::vector<std::string>& files, const Catalog& catalog,
                           std::string_view verb, bool quiet);

/// Returns the list "not_tuned" of --json.
nlohmann::json not_tuned_json(const CapturedWork& work);

}  // namespace greta::tuner::cli
