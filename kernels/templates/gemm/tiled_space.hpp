#pragma once

#include <cstdint>
#include <vector>

#include "kernels/model/config.hpp"
#include "kernels/model/space.hpp"
#include "kernels/templates/gemm/shape.hpp"
#include "runtime/device/device_info.hpp"

namespace greta::kernels::gemm {

/// Returns the space of `tiled`, or of `split_k`.
Alternative tiled_space(const Shape& shape, const DeviceInfo& device, bool split);

/// Returns the number of threads of a workgroup: of a configuration, or as an expression.
auto threads_of(const auto& c) {
  return c["BM"] / c["TM"] * (c["BN"] / c["TN"]);
}

/// Returns the numbers of slices of K that `split_k` offers.
std::vector<int> slice_counts();

/// Returns the bytes of shared memory that a workgroup uses.
std::int64_t shared_bytes(const Config& config);

/// Returns whether operands can be copied to shared memory as they are, to where each element is
/// read.
bool copies(const Shape& shape, const DeviceInfo& device);

/// Returns whether operands may be transposed ahead of the product: then they are copied to shared
/// memory as threads read them.
bool transposes(const Shape& shape, const DeviceInfo& device);

}  // namespace greta::kernels::gemm
