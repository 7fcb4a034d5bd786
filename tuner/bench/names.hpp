#pragma once

#include <string>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

// What a preset may name, each with one line on what it is.
struct Named {
  std::string name;
  std::string summary;
};

/// The names alone.
std::vector<std::string> names_of(const std::vector<Named>& list);

/// Limits and costs of the machine, whatever runs on it.
const std::vector<Named>& platform_names();
/// Costs of the runtime's own calls.
const std::vector<Named>& runtime_names();
/// Health checks of a device, from the one that asks least of it to the one that asks most.
const std::vector<Named>& check_names();

}  // namespace greta::tuner
