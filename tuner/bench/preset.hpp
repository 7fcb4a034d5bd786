#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kernels/catalog.hpp"
#include "kernels/model/problem.hpp"
#include "runtime/device/result.hpp"

namespace greta::tuner {

/// A problem of a preset, and what lists it, for messages: "smoke.json: problems[1]".
struct PresetProblem {
  Problem problem;
  std::string where;
};

/// A list of what is to be tuned or benchmarked together. Its form is described in
/// presets/README.md and presets/schema.json.
struct Preset {
  std::string name;
  std::string budget = "60s";         ///< of each problem, where it is tuned
  int iterations = 10;                ///< blocks of samples of each benchmark, spread over the run
  int batch = 20;                     ///< samples in a block
  int repeat = 1;                     ///< runs of all of it; each adds its blocks
  bool measure = true;                ///< false: kernels are checked and not timed
  int random = 0;                     ///< random configurations of each operation that are checked
  std::vector<std::string> checks;    ///< names of device_checks() to run first
  std::vector<std::string> platform;  ///< names of platform_benchmarks()
  std::vector<std::string> runtime;   ///< names of runtime_benchmarks()
  std::vector<PresetProblem> problems;
};

/// Reads a preset and checks all of it. A failure is one line: the file, the place in it
/// ("problems[1].k") and what is wrong there.
Result<Preset> read_preset(const std::filesystem::path& file, const Catalog& catalog);

/// The JSON schema of presets, made from the catalog: the text of presets/schema.json.
std::string preset_schema(const Catalog& catalog);

}  // namespace greta::tuner
