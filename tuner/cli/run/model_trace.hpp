#pragma once

#include <filesystem>

#include "tuner/cli/run/generate.hpp"

namespace greta::tuner::cli {

/// Generates, and writes the activity of host and device as a trace for Perfetto. Then launches
/// every operation separately. The trace says on which device, and whether with default
/// configurations (`untuned`).
void write_model_trace(Generation& generation, const std::filesystem::path& file, bool untuned);

/// Feeds the prompt and some greedily chosen tokens, and checks every stage against FP64. Prints
/// the first layer and stage beyond its bound, or the result closest to it. Returns the exit code.
int trace_layers(Generation& generation);

}  // namespace greta::tuner::cli
