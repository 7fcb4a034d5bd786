#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/api.hpp"
#include "runtime/device/dtype.hpp"
#include "runtime/device/layers.hpp"

namespace greta::device {

enum class DeviceKind { discrete_gpu, integrated_gpu, virtual_gpu, cpu };

/// Returns "discrete GPU", "integrated GPU", "virtual GPU" or "CPU".
std::string_view to_string(DeviceKind kind);

/// What matrix cores multiply beside elements of a DType: numbers of eight bits, and f32 by three
/// products of TF32.
enum class MatrixNumbers { fp8, int8, tf32x3 };

inline constexpr std::array all_matrix_numbers{MatrixNumbers::fp8, MatrixNumbers::int8,
                                               MatrixNumbers::tf32x3};

constexpr std::string_view to_string(MatrixNumbers numbers) {
  constexpr std::array<std::string_view, all_matrix_numbers.size()> names{"fp8", "int8", "tf32x3"};
  return names.at(static_cast<std::size_t>(numbers));
}

/// An operation D = A B + C of a device's matrix cores, executed by a subgroup. A has the shape
/// m x k, B has the shape k x n.
struct MatrixOperation {
  DType input = DType::f32;        ///< element type of A and B
  DType accumulator = DType::f32;  ///< element type of C and D
  std::uint32_t m = 0, n = 0, k = 0;

  bool operator==(const MatrixOperation&) const = default;
};

/// One instance of a device model.
struct Card {
  std::string uuid;         ///< 32 hex digits; most drivers report the same one in every API
  std::string pci_address;  ///< "0000:01:00.0"; empty where there is none

  bool operator==(const Card&) const = default;
};

/// Everything that GRETA records about a device before running on it.
struct DeviceInfo {
  // Identity
  Api backend = Api::vulkan;
  Language language = Language::glsl;  ///< of kernels
  int index = 0;             ///< index within its backend; the device is called "vulkan:0"
  std::string name;          ///< as reported by the driver
  std::string vendor;        ///< "NVIDIA", "AMD", "Intel", "Mesa"
  std::string architecture;  ///< "gfx1103", "sm_90", "lavapipe"; best effort where an API hides it
  std::string driver;        ///< driver name and version
  std::string compiler;  ///< kernel compiler and version, e.g. "glslang 12.0.0, SPIRV-Tools …"
  /// The vendor's library of matrix products and its version, "cuBLASLt 13.1.0". Empty where there
  /// is none, or where it was not opened (OpenOptions::vendor).
  std::string matrix_library;
  std::string attention_library;  ///< of attention, "cuDNN 9.19.0", likewise
  DeviceKind kind = DeviceKind::cpu;
  Card card;

  // Limits
  std::uint32_t max_workgroup_invocations = 0;
  std::array<std::uint32_t, 3> max_workgroup_size{};
  std::array<std::uint32_t, 3> max_grid{};  ///< workgroups per dimension
  /// Workgroups that GRETA's own plans put in a row of the grid; 0: as many as max_grid allows.
  std::uint32_t planned_grid_row = 0;
  std::uint32_t shared_memory_bytes = 0;  ///< the API's limit per workgroup
  std::uint32_t subgroup_size = 0;        ///< the driver's default
  std::uint32_t min_subgroup_size = 0;    ///< selectable range; equal where there is no choice
  std::uint32_t max_subgroup_size = 0;
  std::uint32_t max_argument_bytes = 0;  ///< kernel arguments (push constants: at most 256)
  std::uint32_t compute_units = 0;       ///< 0 where the API does not report it
  // Limits of one compute unit, for occupancy; 0 where the API does not report them.
  std::uint32_t unit_registers = 0;            ///< 32-bit vector registers, for all its lanes
  std::uint32_t unit_shared_memory_bytes = 0;  ///< shared by all resident workgroups
  std::uint32_t unit_threads = 0;              ///< resident threads
  std::uint64_t memory_bytes = 0;              ///< device-local heap
  std::uint64_t max_allocation_bytes = 0;
  std::uint64_t last_level_cache_bytes = 0;  ///< must be flushed before a cold measurement
  double timestamp_period_ns = 0;            ///< duration of one tick of the device's clock

  // Features
  bool f16_arithmetic = false;
  bool f16_storage = false;
  bool subgroup_size_control = false;
  std::vector<MatrixOperation> matrix_operations;  ///< empty: no matrix cores
  bool unified_memory = false;  ///< device memory is host-visible, as on integrated GPUs
  /// Whether out-of-bounds accesses of kernels are detected and reported: hip-host under
  /// sanitizers.
  bool watches_bounds = false;

  /// Returns an id such as "vulkan:0".
  std::string id() const { return std::string(to_string(backend)) + ":" + std::to_string(index); }
  /// Returns a name of this card that select_device() knows and that holds while other cards come
  /// and go: "hip:0000:c1:00.0", or "vulkan:" and the UUID. A device without a card has its id.
  std::string address() const;
  bool is_cpu() const { return kind == DeviceKind::cpu; }
  /// Whether a vendor's library of this name and version is open.
  bool has_library(std::string_view library) const;
  /// Returns the open library that has the same name, "cuDNN", in any version, or nullptr.
  const std::string* library_like(std::string_view library) const;
  /// Returns the device as it is with no vendor's library open.
  DeviceInfo without_libraries() const;
  /// Returns a hash that identifies the device model as seen through this backend, equal for all
  /// cards of the model (docs/decisions/0019-a-device-model-is-not-a-card.md). It excludes driver
  /// and compiler versions, which are recorded and judged with each result, so that an update does
  /// not orphan a database.
  std::string fingerprint() const;
};

/// Returns a device's name without a driver's additions in parentheses at its end: "llvmpipe" for
/// "llvmpipe (LLVM 15.0.6, 256 bits)".
std::string_view product_name(std::string_view name);

/// Returns whether two descriptions are of the same card. Cards are compared by PCI address, or by
/// UUID where one of them has no address; they differ where neither tells.
bool same_card(const Card& a, const Card& b);
/// Returns whether two devices of this machine are the same card, possibly seen through two APIs. A
/// device that acts as a GPU on the CPU is not a card and equals only itself.
bool same_card(const DeviceInfo& a, const DeviceInfo& b);

}  // namespace greta::device
