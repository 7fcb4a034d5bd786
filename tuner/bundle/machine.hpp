#pragma once

#include <string>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

// Descriptions of a machine's GPU environment as text. They identify no person, machine or card.

/// Returns the operating system, processor and memory.
std::string system_text();

/// Returns the graphics cards on the PCI bus with their kernel drivers and versions, the device
/// files that this user may open, the kernel's compute nodes, and Vulkan driver manifests.
std::string drivers_text();

/// Returns every compiler that GRETA would use, with its version and path, or the error if it is
/// missing.
std::string compilers_text();

/// Returns the paths of the shared libraries that this process has loaded.
std::vector<std::string> loaded_libraries();

}  // namespace greta::tuner
