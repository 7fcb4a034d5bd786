#pragma once

#include <cstdint>
#include <vector>

#include "kernels/templates/attention/shape.hpp"

namespace greta::kernels::attention {

/// Workgroups of `decode` without slices.
struct Readers {
  std::int64_t count;  ///< workgroups
  std::int64_t rows;   ///< of queries, of each
};

/// Returns configurations of `decode` that prefetch keys, for NVIDIA's GPUs, the fastest by
/// predicted time first; some may be invalid. A round of a workgroup takes as long as its bytes or
/// a load's way, and workgroups that a compute unit cannot run at once wait for a whole one. So
/// those are fast that all run at once, with much in flight
/// (results/2026-12-01-nvidia-h200-long-single-queries).
std::vector<Config> fastest_rounds(const Shape& shape, const DeviceInfo& device, Readers readers);

}  // namespace greta::kernels::attention
