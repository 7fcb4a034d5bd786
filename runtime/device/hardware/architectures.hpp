#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/device_info.hpp"

namespace greta::device {

/// The kind of matrix cores of an architecture, named by the instructions that use them.
enum class MatrixCores {
  none,
  mfma,    ///< AMD CDNA: gfx908 … gfx950, 64 lanes
  wmma11,  ///< AMD RDNA 3: gfx11xx, 32 lanes, operands repeated in both halves of the wave
  wmma12,  ///< AMD RDNA 4: gfx12xx, 32 lanes
  mma,     ///< NVIDIA, sm_80 and later: mma.sync
};

/// Returns the matrix cores of an architecture: "gfx942", "sm_90", or "host-gfx942" (hip-host,
/// which imitates an architecture). Returns `none` for unknown names.
MatrixCores matrix_cores(std::string_view architecture);

/// Whether workgroups can run as a cluster and read each other's shared memory. NVIDIA GPUs can
/// from sm_90 on, as hip-host imitates.
bool has_clusters(std::string_view architecture);

/// Whether a kernel can begin before the launch ahead of it ends, and wait for that itself (PTX:
/// griddepcontrol). NVIDIA GPUs can from sm_90 on, as hip-host imitates.
bool overlaps_launches(std::string_view architecture);

/// Whether each thread can copy from where it likes in device memory to where it likes in shared
/// memory while it goes on (PTX: cp.async). NVIDIA GPUs can from sm_80 on, as hip-host imitates.
bool has_lane_copies(std::string_view architecture);

/// Whether reads of shared memory can transpose elements of 16 bits (ds_read_b64_tr_b16), and loads
/// write 16 bytes of each lane to it: on AMD's gfx950. hip-host's gfx942 imitates both.
bool has_turning_reads(std::string_view architecture);

/// Whether loads from global memory can transpose elements of 16 bits (global_load_tr_b128): on
/// AMD's gfx12. hip-host's gfx1201 imitates them.
bool has_turning_loads(std::string_view architecture);

/// Whether warpgroups can multiply matrices of 16-bit elements directly from shared memory (PTX:
/// wgmma). Only NVIDIA's sm_90 can, in code that is compiled for sm_90a, and hip-host's imitation.
bool has_warpgroup_products(std::string_view architecture);

/// Returns the number of dies (XCDs) over which a GPU distributes workgroups in turn, each die with
/// a second-level cache of its own: up to 8 on AMD's gfx942 and gfx950 by the number of compute
/// units, fewer for a partition of a card. 1 on other GPUs; 8 on hip-host, which imitates the
/// order.
int accelerator_dies(const DeviceInfo& device);

/// Returns the names of all architectures in the table, for messages: "gfx906", "gfx908", …
std::vector<std::string> known_architectures();

/// Returns a device of this architecture as HIP would describe it, for compiling on machines
/// without one. The API is HIP, as is the language. Limits and features come from the
/// manufacturers' manuals; the memory size is one that every card has. Returns nothing for
/// architectures that are not in the table.
std::optional<DeviceInfo> architecture_info(std::string_view architecture);

/// The products of numbers of eight bits that an architecture's matrix cores compute in HIP
/// kernels.
struct ByteCores {
  bool int8 = false;
  bool fp8 = false;
  bool fnuz = false;  ///< the form of fp8: AMD's without infinities and negative zero, or OCP's
};
ByteCores byte_cores(std::string_view architecture);

/// Returns whether HIP kernels can multiply these numbers on matrix cores.
bool has_matrix_numbers(std::string_view architecture, MatrixNumbers numbers);

/// Returns the matrix operations that HIP kernels can use on an architecture. The list is empty
/// where it has none.
std::vector<MatrixOperation> hip_matrix_operations(std::string_view architecture);

}  // namespace greta::device
