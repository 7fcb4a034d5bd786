#pragma once

#include <string>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

// Names that a preset may contain, each with a one-line description.
struct Named {
  std::string name;
  std::string summary;
};

/// Returns the names without descriptions.
std::vector<std::string> names_of(const std::vector<Named>& list);

/// Returns the names of the machine's limits and costs, independent of the workload.
const std::vector<Named>& platform_names();
/// Returns the names of the costs of the runtime's calls.
const std::vector<Named>& runtime_names();
/// Returns a device's health checks, from the least to the most demanding.
const std::vector<Named>& check_names();

}  // namespace greta::tuner
