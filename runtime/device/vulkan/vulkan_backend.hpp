#pragma once

#include <memory>

#include "runtime/device/backend.hpp"

namespace greta::vulkan {

/// A Vulkan backend. It lists the drivers that are there when it is first asked.
std::unique_ptr<Backend> create_backend();

}  // namespace greta::vulkan
