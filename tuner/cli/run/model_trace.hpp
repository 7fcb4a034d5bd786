#pragma once

#include <filesystem>

#include "tuner/cli/run/generate.hpp"

namespace greta::tuner::cli {

/// Generates, and writes the activity of host and device as a trace for Perfetto. Then launches
/// every operation separately. The trace says on which device, and whether with default
/// configurations (`untuned`).
void write_model_trace(Generation& generation, const std::filesystem::path& file, bool untuned);

/// Feeds the prompt and some greedily chosen tokens, and checks every stage against FP64. Prints
/// the first layer and stage beyond its bound, and what is wrong with its kernel, which is kept as
/// a case in `keep_failed` (by default in the user's cache); or the results closest to their
/// bounds. With `json`, prints the same as JSON (docs/json.md), and examines no kernel. Returns the
/// exit code.
int trace_layers(Generation& generation, const RuntimeChoice& runtime,
                 const std::filesystem::path& keep_failed, bool json);

}  // namespace greta::tuner::cli
