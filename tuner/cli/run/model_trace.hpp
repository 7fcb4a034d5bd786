#pragma once

#include <filesystem>

#include "tuner/cli/run/generate.hpp"

namespace greta::tuner::cli {

/// Generates, and writes what host and device do meanwhile as a trace for Perfetto: then every
/// operation is launched by itself.
void write_model_trace(Generation& generation, const std::filesystem::path& file);

/// Feeds the prompt and greedily some tokens, and checks every stage against FP64. Prints the first
/// layer and stage that passes its bound, or what came closest; returns the exit code.
int trace_layers(Generation& generation);

}  // namespace greta::tuner::cli
