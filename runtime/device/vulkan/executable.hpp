#pragma once

#include <string>

#include "runtime/device/vulkan/context.hpp"

namespace greta::device::vulkan {

/// Returns what the driver reports about a pipeline's code (VK_KHR_pipeline_executable_properties).
/// The pipeline must have been created with VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR. Throws
/// Refusal.
KernelStatistics read_statistics(const Context& context, VkPipeline pipeline);

/// Returns a pipeline's machine code as text. The pipeline must have been created with
/// VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR. Fails with `unavailable` where the
/// driver provides none. Throws Refusal.
Result<std::string> read_listing(const Context& context, VkPipeline pipeline);

}  // namespace greta::device::vulkan
