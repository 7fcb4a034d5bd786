#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kernels/catalog.hpp"
#include "kernels/model/problem.hpp"
#include "runtime/device/result.hpp"
#include "tuner/bench/gate.hpp"

namespace greta::tuner {

/// A problem of a preset and where it is listed, for messages: "smoke.json: problems[1]".
struct PresetProblem {
  Problem problem;
  std::string where;
  // What is measured; if both are empty, the configuration that a look-up returns.
  std::vector<std::string> configs{};   ///< these configurations, as reports print them
  std::vector<std::string> variants{};  ///< the best known configuration of each of these variants
  std::vector<Gate> expect{};           ///< limits of the fastest of them
  bool parts = false;                   ///< also the operations that it fuses (Operation::parts)

  /// Returns whether a configuration, a variant or a gate is of this variant.
  bool names(std::string_view variant) const;
};

/// A list of problems and benchmarks for one run of tuning or benchmarking. presets/README.md and
/// presets/schema.json describe the format.
struct Preset {
  std::string name;
  std::string budget = "60s";         ///< per problem, when tuned
  int iterations = 10;                ///< blocks of samples per benchmark, spread over the run
  int batch = 20;                     ///< samples in a block
  int repeat = 1;                     ///< number of runs of the whole preset; each adds its blocks
  bool measure = true;                ///< false: kernels are checked and not timed
  int random = 0;                     ///< random configurations per operation that are checked
  std::vector<std::string> checks;    ///< names of device_checks() to run first
  std::vector<std::string> platform;  ///< names of platform_benchmarks()
  std::vector<std::string> runtime;   ///< names of runtime_benchmarks()
  std::vector<PresetProblem> problems;
};

/// Reads and validates a preset. A failure is one line: the file, the place in it ("problems[1].k")
/// and the error.
Result<Preset> read_preset(const std::filesystem::path& file, const Catalog& catalog);

/// Returns a preset of these problems, each listed once, as the text of its file.
std::string preset_text(const std::string& name, const std::string& summary,
                        const std::vector<Problem>& problems);

/// Returns the JSON schema of presets, generated from the catalog: the text of presets/schema.json.
std::string preset_schema(const Catalog& catalog);

}  // namespace greta::tuner
