#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/pipeline/llama/trace_check.hpp"
#include "tuner/cli/run/generate.hpp"
#include "tuner/diagnose/diagnosis.hpp"

namespace greta::tuner::cli {

/// An operation that was run alone, and what is wrong with it.
struct ExaminedOperation {
  std::string label, problem, config;
  std::string failure{};  ///< empty: its results are correct
  std::vector<Diagnosis> diagnoses{};
};

/// The operations that compute a stage, up to the first one that is wrong alone.
using StageExamination = std::vector<ExaminedOperation>;

/// Finds out what is wrong with the kernels of a stage that failed in a pass of `tokens` tokens:
/// runs the stage's operation alone with the configuration that the model runs, in a worker process
/// and on random inputs; then those that prepare its operands, by the order of columns or by
/// decoding. One that is wrong there, too, is kept as a case in `folder` and diagnosed.
StageExamination examine_stage(Generation& generation, const RuntimeChoice& runtime,
                               const StageFinding& finding, std::int64_t tokens,
                               const std::filesystem::path& folder);

std::string text_of(const StageExamination& examination);
nlohmann::json json_of(const StageExamination& examination);

}  // namespace greta::tuner::cli
