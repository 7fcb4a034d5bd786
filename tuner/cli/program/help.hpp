#pragma once

#include <CLI/CLI.hpp>

#include "runtime/device/layers.hpp"

namespace greta::tuner::cli {

/// Names the value of every option that has no name yet, by its type or unit, for --help and the
/// manual: "FILE", "SECONDS", "N". The same option has the same name in every tool.
void name_values(CLI::App& app);

}  // namespace greta::tuner::cli
