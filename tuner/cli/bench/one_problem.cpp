#include "tuner/cli/bench/one_problem.hpp"

#include <algorithm>
#include <optional>

#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/program/terminal.hpp"
#include "tuner/cli/program/tool.hpp"
#include "tuner/report/print.hpp"
#include "tuner/tuning/device_selection.hpp"

namespace greta::tuner::cli {

Preset preset_of(const BenchOptions& options) {
  if (!options.problem) return load_preset(options.preset);
  Preset preset;
  preset.name = options.problem->problem.op;
  preset.problems.push_back(*options.problem);
  preset.problems.insert(preset.problems.end(), options.own.begin(), options.own.end());
  return preset;
}

void add_backends(std::vector<ProbedDevice>& selected) {
  const std::vector<ProbedDevice> wanted = selected, present = present_devices();
  for (const ProbedDevice& one : wanted) {
    const std::string& card = one.info.card.pci_address;
    for (const ProbedDevice& other : present) {
      const bool listed = std::any_of(selected.begin(), selected.end(), [&](const auto& known) {
        return known.info.id() == other.info.id();
      });
      if (!card.empty() && other.usable && other.info.card.pci_address == card && !listed)
        selected.push_back(other);
    }
  }
  if (selected.size() == wanted.size()) {
    tell("--each-backend: no other API reaches " + wanted.front().info.id());
  }
}

void check_configs(const PresetProblem& listed,
                   const std::vector<std::unique_ptr<DeviceBench>>& devices) {
  for (const std::string& text : listed.configs) {
    std::optional<Failure> why;
    for (const auto& device : devices) {
      const Operation& operation = device->checker().catalog().at(listed.problem.op);
      const auto config = operation.space(listed.problem, device->info()).parse(text);
      why = config ? std::nullopt : std::optional(config.failure());
      if (!why) break;
    }
    if (why) throw CommandError(exit_usage, "--config: " + why->message);
  }
}

}  // namespace greta::tuner::cli
