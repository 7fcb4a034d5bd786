#pragma once

#include <cstdint>
#include <optional>

#include "kernels/templates/attention/shape.hpp"

namespace greta::kernels::attention {

/// Workgroups of `decode` without slices.
struct Readers {
  std::int64_t count;  ///< workgroups
  std::int64_t rows;   ///< of queries, of each
};

/// Returns an estimate of the registers that NVRTC needs for a thread of `decode` with so many
/// rows: it gives loads of the next keys (AHEAD) those of the keys before them.
std::int64_t registers_with_nvrtc(const Shape& shape, std::int64_t rows, const Config& config);

/// Returns the valid configuration of `decode` that prefetches keys and is predicted to be the
/// fastest, of about equal ones the one with the fewest slices. A round of a workgroup takes as
/// long as its bytes or a load's way, and workgroups that a compute unit cannot run at once wait
/// for a whole one. So those are fast that all run at once, with much in flight
/// (results/2026-12-01-nvidia-h200-long-single-queries). Returns none with several rows, or for
/// other devices than NVIDIA's from sm_90 on: for these it is not measured.
std::optional<Config> fastest_rounds(const Shape& shape, const DeviceInfo& device, Readers readers,
                                     const Alternative& space);

}  // namespace greta::kernels::attention
