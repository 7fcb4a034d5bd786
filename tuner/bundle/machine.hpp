#pragma once

#include <string>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

// What a machine has for GPUs, as text for people. Nothing of it names a person, the machine, or a
// single card.

/// Operating system, processor and memory.
std::string system_text();

/// Graphics cards on the PCI bus with their kernel drivers, those drivers' versions, which device
/// files this user may open, what the kernel says of compute nodes, and Vulkan's driver manifests.
std::string drivers_text();

/// Every compiler that GRETA would use, with its version and path, and what it says where it is
/// missing.
std::string compilers_text();

/// Paths of the shared libraries that this process has loaded.
std::vector<std::string> loaded_libraries();

}  // namespace greta::tuner
