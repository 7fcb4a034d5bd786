#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::device {

enum class DeviceKind { discrete_gpu, integrated_gpu, virtual_gpu, cpu };

/// "discrete GPU", "integrated GPU", "virtual GPU" or "CPU".
std::string_view to_string(DeviceKind kind);

/// An operation D = A B + C of a device's matrix cores, done by a subgroup: A is m x k, B k x n.
struct MatrixOperation {
  std::string input;        ///< element type of A and B: "f32", "f16" or "bf16"
  std::string accumulator;  ///< of C and D: "f32"
  std::uint32_t m = 0, n = 0, k = 0;

  bool operator==(const MatrixOperation&) const = default;
};

/// Everything GRETA knows about a device before running on it.
struct DeviceInfo {
  // Identity
  std::string backend;            ///< "vulkan", "hip", "hip-host"
  std::string language = "glsl";  ///< what its kernels are written in: "glsl" or "hip"
  int index = 0;                  ///< position within its backend; the device is called "vulkan:0"
  std::string name;               ///< as the driver says it
  std::string vendor;             ///< "NVIDIA", "AMD", "Intel", "Mesa"
  std::string architecture;  ///< "gfx1103", "sm_90", "lavapipe"; best effort where an API hides it
  std::string driver;        ///< driver name and version
  std::string compiler;  ///< kernel compiler and version, e.g. "glslang 12.0.0, SPIRV-Tools …"
  DeviceKind kind = DeviceKind::cpu;
  std::string uuid;         ///< 32 hex digits; the same card has one UUID in every API
  std::string pci_address;  ///< "0000:01:00.0", empty where there is none

  // Limits
  std::uint32_t max_workgroup_invocations = 0;
  std::array<std::uint32_t, 3> max_workgroup_size{};
  std::array<std::uint32_t, 3> max_grid{};  ///< workgroups per dimension
  std::uint32_t shared_memory_bytes = 0;    ///< per workgroup, as the API allows
  std::uint32_t subgroup_size = 0;          ///< the driver's default
  std::uint32_t min_subgroup_size = 0;      ///< selectable range; equal where there is no choice
  std::uint32_t max_subgroup_size = 0;
  std::uint32_t max_argument_bytes = 0;  ///< kernel arguments (push constants: 256 at most)
  std::uint32_t compute_units = 0;       ///< 0 where the API does not say
  // Of one compute unit, for occupancy; 0 where the API does not say.
  std::uint32_t unit_registers = 0;            ///< 32-bit vector registers of all its lanes
  std::uint32_t unit_shared_memory_bytes = 0;  ///< of all workgroups that run on it
  std::uint32_t unit_threads = 0;              ///< resident at once
  std::uint64_t memory_bytes = 0;              ///< device-local heap
  std::uint64_t max_allocation_bytes = 0;
  std::uint64_t last_level_cache_bytes = 0;  ///< what a cold measurement must flush
  double timestamp_period_ns = 0;            ///< one tick of the device's clock

  // Features
  bool f16_arithmetic = false;
  bool f16_storage = false;
  bool subgroup_size_control = false;
  std::vector<MatrixOperation> matrix_operations;  ///< empty: no matrix cores
  bool unified_memory = false;  ///< device memory is host-visible, as on integrated GPUs
  /// Accesses of kernels outside of a buffer are found and reported: hip-host under sanitizers.
  bool watches_bounds = false;

  /// "vulkan:0"
  std::string id() const { return backend + ":" + std::to_string(index); }
  bool is_cpu() const { return kind == DeviceKind::cpu; }
  /// Identifies the hardware seen through this backend. Driver and compiler versions are not in it:
  /// they are recorded beside each result and judged there, so that an update does not orphan a
  /// database.
  std::string fingerprint() const;
};

/// Whether two devices of this machine are one card, seen through two APIs maybe: by their PCI
/// addresses, or by their UUIDs where one has no address. What acts as a GPU on the CPU is no card,
/// and only itself.
bool same_card(const DeviceInfo& a, const DeviceInfo& b);

}  // namespace greta::device
