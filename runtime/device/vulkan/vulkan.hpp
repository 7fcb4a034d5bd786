#pragma once

// Vulkan's types and functions. Global functions are those of the loader, loaded by load_loader().
// Functions of a device are in its VolkDeviceTable.
#include <volk.h>

#include "runtime/device/refusal.hpp"

// Vulkan's structures are made to be named in part: what is not named is zero.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace greta::device::vulkan {

/// Throws a Refusal that names the call, unless the result is VK_SUCCESS.
void check(VkResult result, const char* what);

/// Opens the Vulkan loader. Throws `unavailable` when there is none.
void load_loader();

/// Loads the functions that need an instance. This is done once per process.
void load_instance_functions(VkInstance instance);

}  // namespace greta::device::vulkan
