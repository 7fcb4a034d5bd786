#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/device_info.hpp"

namespace greta::device {

/// The kind of matrix cores that an architecture has, by the instructions that reach them.
enum class MatrixCores {
  none,
  mfma,    ///< AMD CDNA: gfx908 … gfx950, 64 lanes
  wmma11,  ///< AMD RDNA 3: gfx11xx, 32 lanes, operands repeated in both halves
  wmma12,  ///< AMD RDNA 4: gfx12xx, 32 lanes
  mma,     ///< NVIDIA from sm_80 on: mma.sync
};

/// Of "gfx942", "sm_90" or "host-gfx942" (hip-host, which imitates an architecture); `none` for
/// unknown names.
MatrixCores matrix_cores(std::string_view architecture);

/// Whether workgroups can run together as a cluster and read each other's shared memory: NVIDIA's
/// from sm_90 on. hip-host imitates none.
bool has_clusters(std::string_view architecture);

/// Whether warpgroups can multiply matrices of 16-bit elements straight from shared memory (PTX:
/// wgmma): NVIDIA's sm_90 alone, in code that is compiled for sm_90a.
bool has_warpgroup_products(std::string_view architecture);

/// Architectures of the table, for messages: "gfx906", "gfx908", …
std::vector<std::string> known_architectures();

/// A device of this architecture as HIP shows it, for compiling where there is none: backend "hip",
/// language "hip", limits and features from the makers' manuals; the memory that any card
/// has.
/// Nothing for architectures that are not in the table.
std::optional<DeviceInfo> architecture_info(std::string_view architecture);

/// Matrix operations that HIP kernels can use on an architecture; empty where it has none.
std::vector<MatrixOperation> hip_matrix_operations(std::string_view architecture);

}  // namespace greta::device
