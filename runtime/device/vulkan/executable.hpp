#pragma once

#include <string>

#include "runtime/device/vulkan/context.hpp"

namespace greta::device::vulkan {

/// What the driver says about a pipeline's code (VK_KHR_pipeline_executable_properties). The
/// pipeline was made with VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR. Throws Refusal.
KernelStatistics read_statistics(const Context& context, VkPipeline pipeline);

/// The machine code of a pipeline as text. The pipeline was made with
/// VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR. Fails with `unavailable` where the
/// driver gives none. Throws Refusal.
Result<std::string> read_listing(const Context& context, VkPipeline pipeline);

}  // namespace greta::device::vulkan
