#pragma once

#include <cstdint>
#include <filesystem>

#include "runtime/pipeline/llama/trace_check.hpp"
#include "tuner/cli/run/generate.hpp"

namespace greta::tuner::cli {

/// Finds out what is wrong with the kernel of a stage that failed in a pass of `tokens` tokens:
/// runs the stage's operation alone with the configuration that the model runs, in a worker process
/// and on random inputs. If it is wrong there, too, keeps it as a case in `folder` and prints the
/// diagnosis.
void examine_stage(Generation& generation, const RuntimeChoice& runtime,
                   const StageFinding& finding, std::int64_t tokens,
                   const std::filesystem::path& folder);

}  // namespace greta::tuner::cli
