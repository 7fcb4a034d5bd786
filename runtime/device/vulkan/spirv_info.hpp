#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "runtime/device/layers.hpp"

namespace greta::device::vulkan {

/// What a compute shader's SPIR-V says about the resources it needs.
struct SpirvInfo {
  std::array<std::uint32_t, 3> local_size{};
  std::uint64_t shared_memory_bytes = 0;
  std::uint64_t push_constant_bytes = 0;  ///< end of the last member
};

/// Reads well-formed SPIR-V, as the compiler makes it: literal workgroup sizes, explicit offsets.
/// Source: SPIR-V specification 1.6, sections 2.3 and 3.
SpirvInfo inspect(std::span<const std::uint32_t> spirv);

}  // namespace greta::device::vulkan
