#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::device {

/// Properties of devices that APIs do not report. They come from tables that are indexed by the
/// device's name.

/// Returns the architecture of a GPU: "gfx1100" or "sm_90". For names that are not in the table,
/// returns the name in lower case with underscores.
std::string gpu_architecture(std::string_view device_name);

/// Returns the size of a GPU's last-level cache, which must be flushed before a cold measurement.
/// Unknown GPUs are assumed to have the largest known one, 256 MiB: flushing too much does not
/// change the ranking of candidates, flushing too little does.
std::uint64_t gpu_last_level_cache_bytes(std::string_view device_name,
                                         std::string_view architecture);

/// The processor that this program runs on.
struct HostProcessor {
  std::string model;                         ///< "AMD EPYC 9654 96-Core Processor"; may be empty
  std::uint32_t cores = 1;                   ///< hardware threads
  std::uint64_t last_level_cache_bytes = 0;  ///< sum over all caches of that level
};
HostProcessor host_processor();

}  // namespace greta::device
