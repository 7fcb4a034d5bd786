#include "runtime/device/hardware/occupancy.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace greta::device {
namespace {

constexpr std::uint32_t unlimited = 1U << 20;  // more waves than any unit holds

/// The resources of a unit, and their allocation granularity.
struct Unit {
  std::uint32_t simds = 4;
  std::uint32_t wave = 64;
  std::uint32_t max_waves = 0;         ///< per SIMD
  std::uint32_t registers = 0;         ///< per SIMD and lane
  std::uint32_t register_granule = 0;  ///< per wave and lane
  bool two_files = false;              ///< half of the registers are accumulators
  bool limited_scalars = false;        ///< scalar registers are shared by a SIMD's waves
  std::uint32_t shared_memory_bytes = 0;
  std::uint32_t shared_memory_granule = 0;
  std::uint32_t shared_memory_reserved = 0;  ///< per workgroup, in addition to its own
  std::uint32_t max_groups = 0;
};

/// A compute unit of AMD holds 16 workgroups that use barriers. On RDNA, two compute units form a
/// unit.
Unit amd_unit(const DeviceInfo& device) {
  const std::string_view name = device.architecture;
  const bool rdna = device.subgroup_size == 32;
  const std::uint32_t joined = rdna ? 2 : 1;
  Unit unit;
  unit.wave = device.subgroup_size;
  unit.max_waves = device.unit_threads * joined / unit.simds / unit.wave;
  unit.registers = device.unit_registers * joined / unit.simds / unit.wave;
  const bool one_file = name == "gfx90a" || name == "gfx942" || name == "gfx950";
  unit.two_files = name == "gfx908";
  unit.register_granule = rdna ? unit.registers / 64 : one_file ? 8 : 4;
  unit.limited_scalars = !rdna;
  unit.shared_memory_bytes = device.unit_shared_memory_bytes * joined;
  unit.shared_memory_granule = rdna ? 1024 : name == "gfx950" ? 1280 : 512;
  unit.max_groups = 16 * joined;
  return unit;
}

/// Returns the maximum number of resident workgroups per multiprocessor.
std::uint32_t nvidia_max_groups(std::string_view architecture) {
  constexpr std::array<std::pair<std::string_view, std::uint32_t>, 4> fewer{
      {{"sm_75", 16}, {"sm_86", 16}, {"sm_89", 24}, {"sm_120", 24}}};
  const auto* const found = std::find_if(
      fewer.begin(), fewer.end(), [&](const auto& entry) { return entry.first == architecture; });
  return found == fewer.end() ? 32 : found->second;
}

Unit nvidia_unit(const DeviceInfo& device) {
  const bool volta = device.architecture == "sm_70" || device.architecture == "sm_75";
  Unit unit;
  unit.wave = device.subgroup_size;
  unit.max_waves = device.unit_threads / unit.simds / unit.wave;
  unit.registers = device.unit_registers / unit.simds / unit.wave;
  unit.register_granule = 8;
  unit.shared_memory_bytes = device.unit_shared_memory_bytes;
  unit.shared_memory_granule = volta ? 256 : 128;
  unit.shared_memory_reserved = volta ? 0 : 1024;
  unit.max_groups = nvidia_max_groups(device.architecture);
  return unit;
}

std::uint32_t ceil_div(std::uint32_t a, std::uint32_t b) {
  return (a + b - 1) / b;
}

std::uint32_t round_up(std::uint32_t a, std::uint32_t b) {
  return ceil_div(a, b) * b;
}

std::uint32_t register_waves(const Unit& unit, const KernelStatistics& kernel) {
  const std::uint32_t used =
      unit.two_files ? std::max(kernel.registers, kernel.accumulator_registers) : kernel.registers;
  const std::uint32_t there = unit.two_files ? unit.registers / 2 : unit.registers;
  if (used == 0) return unit.max_waves;
  return std::min(unit.max_waves, there / round_up(used, unit.register_granule));
}

/// Uses the limits of GFX8 and GFX9 as in LLVM's GCNSubtarget. CDNA belongs to that family.
std::uint32_t scalar_register_waves(const Unit& unit, const KernelStatistics& kernel) {
  if (!unit.limited_scalars) return unit.max_waves;
  const std::uint32_t used = kernel.scalar_registers;
  const std::uint32_t waves = used <= 80 ? 10 : used <= 88 ? 9 : used <= 100 ? 8 : 7;
  return std::min(unit.max_waves, waves);
}

std::uint32_t shared_memory_groups(const Unit& unit, const KernelStatistics& kernel) {
  const std::uint32_t used = kernel.shared_memory_bytes + unit.shared_memory_reserved;
  if (used == 0) return unlimited;
  return unit.shared_memory_bytes / round_up(used, unit.shared_memory_granule);
}

}  // namespace

std::optional<Occupancy> occupancy(const DeviceInfo& device, const KernelStatistics& kernel,
                                   std::uint32_t threads) {
  const std::string_view architecture = device.architecture;
  const bool amd = architecture.starts_with("gfx");
  const bool known = amd || architecture.starts_with("sm_");
  if (!known || threads == 0 || device.subgroup_size == 0 || device.unit_registers == 0 ||
      device.unit_shared_memory_bytes == 0 || device.unit_threads == 0) {
    return std::nullopt;
  }
  const Unit unit = amd ? amd_unit(device) : nvidia_unit(device);
  const std::uint32_t group_waves = ceil_div(threads, unit.wave);
  const std::uint32_t unit_waves = unit.max_waves * unit.simds;
  // The limit on workgroups per unit is AMD's number of barriers. A workgroup of one wave needs no
  // barrier.
  const std::uint32_t most_groups = amd && group_waves == 1 ? unlimited : unit.max_groups;

  Occupancy result;
  result.max_waves = unit.max_waves;
  result.register_waves = register_waves(unit, kernel);
  result.scalar_register_waves = scalar_register_waves(unit, kernel);
  const std::uint32_t by_threads = std::min(unit_waves / group_waves, most_groups);
  const std::uint32_t by_shared_memory = shared_memory_groups(unit, kernel);
  result.shared_memory_waves = std::min(
      unit.max_waves, ceil_div(std::min(by_shared_memory, by_threads) * group_waves, unit.simds));
  // The first of equal limits is reported: "threads" comes first, because a kernel that fills a
  // unit is limited by nothing else.
  const std::array<std::pair<std::uint32_t, std::string_view>, 4> limits{
      {{by_threads, "threads"},
       {result.register_waves * unit.simds / group_waves, "registers"},
       {by_shared_memory, "shared memory"},
       {result.scalar_register_waves * unit.simds / group_waves, "scalar registers"}}};
  const auto* const least = std::min_element(
      limits.begin(), limits.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  result.groups = least->first;
  result.limit = least->second;
  result.waves = static_cast<double>(result.groups * group_waves) / unit.simds;
  return result;
}

}  // namespace greta::device
