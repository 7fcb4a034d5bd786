#pragma once

#include "tuner/cli/run/generate.hpp"

namespace greta::tuner::cli {

/// Generates after each prompt of the file of --prompts, in one batch, and writes the texts in the
/// order of the file, each when it and those before it have ended, or a JSON report. Writes the mix
/// of lengths that ran to --record-mix. Returns the exit code. Throws CommandError.
int generate_batch(const GenerateOptions& options);

}  // namespace greta::tuner::cli
