#pragma once

#include "runtime/device/backend.hpp"

namespace greta::vulkan {

/// The Vulkan backend. Lives as long as the process.
Backend& backend();

}  // namespace greta::vulkan
