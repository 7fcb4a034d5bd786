#pragma once

#include <memory>
#include <vector>

#include "runtime/device/backend.hpp"
#include "tuner/bench/preset.hpp"
#include "tuner/cli/bench/device_bench.hpp"
#include "tuner/cli/bench/options.hpp"

namespace greta::tuner::cli {

/// Returns the preset that the options name, or one of their only problem.
Preset preset_of(const BenchOptions& options);

/// Adds the devices by which other APIs reach the same cards.
void add_backends(std::vector<ProbedDevice>& selected);

/// Throws CommandError unless each configuration of the problem is valid on one of the devices.
void check_configs(const PresetProblem& listed,
                   const std::vector<std::unique_ptr<DeviceBench>>& devices);

}  // namespace greta::tuner::cli
