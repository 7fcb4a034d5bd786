#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::device {

/// What APIs do not say about a device, from tables by its name.

/// The architecture of a GPU: "gfx1100" or "sm_90"; for names not in the table, the name in lower
/// case with underscores.
std::string gpu_architecture(std::string_view device_name);

/// Size of the last-level cache of a GPU, which a cold measurement must flush. Unknown GPUs are
/// taken to have the largest one known, 256 MiB: too much flushing ranks right, too little does
/// not.
std::uint64_t gpu_last_level_cache_bytes(std::string_view device_name,
                                         std::string_view architecture);

/// The processor this program runs on.
struct HostProcessor {
  std::string model;                         ///< "AMD EPYC 9654 96-Core Processor"; may be empty
  std::uint32_t cores = 1;                   ///< hardware threads
  std::uint64_t last_level_cache_bytes = 0;  ///< all of them together
};
HostProcessor host_processor();

}  // namespace greta::device
