#include "runtime/device/hardware/architectures.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace greta::device {
namespace {

struct Architecture {
  std::string_view name;
  MatrixCores cores = MatrixCores::none;
  std::uint32_t wave = 32;
  std::uint32_t units = 0;             ///< of the largest device of this architecture
  std::uint32_t unit_registers = 0;    ///< 32-bit, for all lanes of a compute unit
  std::uint32_t unit_shared_kib = 64;  ///< shared by all workgroups on a compute unit
  std::uint32_t shared_kib = 64;       ///< limit for one workgroup
  std::uint32_t unit_threads = 2048;
  std::uint32_t cache_mib = 0;  ///< last-level cache
};

// Sources for AMD: the instruction set manuals and LLVM's AMDGPU usage guide. A compute unit of
// RDNA is half of a workgroup processor, in the mode in which a workgroup stays within one compute
// unit. Source for NVIDIA: CUDA C++ Programming Guide, table "Technical specifications per compute
// capability".
constexpr std::array table{
    Architecture{"gfx906", MatrixCores::none, 64, 60, 65536, 64, 64, 2560, 4},
    Architecture{"gfx908", MatrixCores::mfma, 64, 120, 131072, 64, 64, 2560, 8},
    Architecture{"gfx90a", MatrixCores::mfma, 64, 104, 131072, 64, 64, 2048, 8},
    Architecture{"gfx942", MatrixCores::mfma, 64, 304, 131072, 64, 64, 2048, 256},
    Architecture{"gfx950", MatrixCores::mfma, 64, 256, 131072, 160, 160, 2048, 256},
    Architecture{"gfx1030", MatrixCores::none, 32, 80, 65536, 64, 64, 1024, 128},
    Architecture{"gfx1031", MatrixCores::none, 32, 40, 65536, 64, 64, 1024, 96},
    Architecture{"gfx1032", MatrixCores::none, 32, 32, 65536, 64, 64, 1024, 32},
    Architecture{"gfx1100", MatrixCores::wmma11, 32, 96, 98304, 64, 64, 1024, 96},
    Architecture{"gfx1101", MatrixCores::wmma11, 32, 60, 98304, 64, 64, 1024, 64},
    Architecture{"gfx1102", MatrixCores::wmma11, 32, 32, 65536, 64, 64, 1024, 32},
    Architecture{"gfx1103", MatrixCores::wmma11, 32, 12, 65536, 64, 64, 1024, 4},
    Architecture{"gfx1150", MatrixCores::wmma11, 32, 16, 65536, 64, 64, 1024, 4},
    Architecture{"gfx1151", MatrixCores::wmma11, 32, 40, 98304, 64, 64, 1024, 32},
    Architecture{"gfx1200", MatrixCores::wmma12, 32, 32, 98304, 64, 64, 1024, 32},
    Architecture{"gfx1201", MatrixCores::wmma12, 32, 64, 98304, 64, 64, 1024, 64},
    Architecture{"sm_70", MatrixCores::none, 32, 80, 65536, 96, 96, 2048, 6},
    Architecture{"sm_75", MatrixCores::none, 32, 72, 65536, 64, 64, 1024, 6},
    Architecture{"sm_80", MatrixCores::mma, 32, 108, 65536, 164, 163, 2048, 40},
    Architecture{"sm_86", MatrixCores::mma, 32, 84, 65536, 100, 99, 1536, 6},
    Architecture{"sm_89", MatrixCores::mma, 32, 142, 65536, 100, 99, 1536, 96},
    Architecture{"sm_90", MatrixCores::mma, 32, 132, 65536, 228, 227, 2048, 64},
    Architecture{"sm_100", MatrixCores::mma, 32, 148, 65536, 228, 227, 2048, 126},
    Architecture{"sm_120", MatrixCores::mma, 32, 170, 65536, 100, 99, 1536, 96},
};

// Every card in the table has at least this much memory. Workspace sizes are checked against it.
constexpr std::uint64_t assumed_memory_bytes = std::uint64_t{8} << 30;

constexpr std::string_view host_prefix = "host-";

const Architecture* find(std::string_view name) {
  if (name.starts_with(host_prefix)) name.remove_prefix(host_prefix.size());
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const auto& a) { return a.name == name; });
  return found == table.end() ? nullptr : found;
}

}  // namespace

MatrixCores matrix_cores(std::string_view architecture) {
  const Architecture* const known = find(architecture);
  return known != nullptr ? known->cores : MatrixCores::none;
}

bool has_clusters(std::string_view architecture) {
  constexpr std::string_view prefix = "sm_";
  int number = 0;
  if (architecture.starts_with(host_prefix)) architecture.remove_prefix(host_prefix.size());
  if (!architecture.starts_with(prefix)) return false;
  const std::string_view digits = architecture.substr(prefix.size());
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number >= 90;
}

bool overlaps_launches(std::string_view architecture) {
  return has_clusters(architecture) || architecture.starts_with(host_prefix);
}

bool has_lane_copies(std::string_view architecture) {
  return matrix_cores(architecture) == MatrixCores::mma;
}

bool has_turning_reads(std::string_view architecture) {
  return architecture == "gfx950" || architecture == "host-gfx942";
}

bool has_turning_loads(std::string_view architecture) {
  return matrix_cores(architecture) == MatrixCores::wmma12;
}

bool has_warpgroup_products(std::string_view architecture) {
  return architecture == "sm_90" || architecture == "host-sm_90";
}

// Source: AMD Instinct MI300X and MI350X data sheets.
int accelerator_dies(const DeviceInfo& device) {
  const std::string_view name = device.architecture;
  const bool host = name.starts_with(host_prefix);
  const std::uint32_t units = name.ends_with("gfx942") ? 38 : name.ends_with("gfx950") ? 32 : 0;
  if (units == 0) return 1;
  return host ? 8 : static_cast<int>(std::max(1U, (device.compute_units + units / 2) / units));
}

std::vector<std::string> known_architectures() {
  std::vector<std::string> names;
  for (const auto& architecture : table) names.emplace_back(architecture.name);
  return names;
}

ByteCores byte_cores(std::string_view architecture) {
  const auto is = [&](std::string_view name) { return architecture.ends_with(name); };
  switch (matrix_cores(architecture)) {
    case MatrixCores::none:
      return {};
    case MatrixCores::mfma:
      if (is("gfx908") || is("gfx90a")) return {.int8 = true};
      return {.int8 = true, .fp8 = true, .fnuz = is("gfx942")};
    case MatrixCores::wmma11:
      return {.int8 = true};
    case MatrixCores::wmma12:
      return {.int8 = true, .fp8 = true};
    case MatrixCores::mma:
      return {.int8 = true, .fp8 = is("sm_89") || is("sm_90") || is("sm_100") || is("sm_120")};
  }
  return {};
}

bool has_matrix_numbers(std::string_view architecture, MatrixNumbers numbers) {
  switch (numbers) {
    case MatrixNumbers::fp8:
      return byte_cores(architecture).fp8;
    case MatrixNumbers::int8:
      return byte_cores(architecture).int8;
    case MatrixNumbers::tf32x3:
      return matrix_cores(architecture) == MatrixCores::mma;
  }
  return false;
}

std::vector<MatrixOperation> hip_matrix_operations(std::string_view architecture) {
  switch (matrix_cores(architecture)) {
    case MatrixCores::none:
      return {};
    case MatrixCores::mfma:
      // bf16 instructions of these shapes were introduced with gfx90a.
      if (architecture.ends_with("gfx908")) {
        return {{DType::f32, DType::f32, 16, 16, 4},
                {DType::f16, DType::f32, 16, 16, 16},
                {DType::f16, DType::f32, 32, 32, 8}};
      }
      return {{DType::f32, DType::f32, 16, 16, 4},
              {DType::f16, DType::f32, 16, 16, 16},
              {DType::f16, DType::f32, 32, 32, 8},
              {DType::bf16, DType::f32, 16, 16, 16},
              {DType::bf16, DType::f32, 32, 32, 8}};
    case MatrixCores::wmma11:
    case MatrixCores::wmma12:
      return {{DType::f16, DType::f32, 16, 16, 16}, {DType::bf16, DType::f32, 16, 16, 16}};
    case MatrixCores::mma:
      if (has_warpgroup_products(architecture)) {
        return {{DType::f16, DType::f32, 16, 8, 16},
                {DType::bf16, DType::f32, 16, 8, 16},
                {DType::f16, DType::f32, 64, 256, 16},
                {DType::bf16, DType::f32, 64, 256, 16}};
      }
      return {{DType::f16, DType::f32, 16, 8, 16}, {DType::bf16, DType::f32, 16, 8, 16}};
  }
  return {};
}

std::optional<DeviceInfo> architecture_info(std::string_view architecture) {
  const Architecture* const known = find(architecture);
  if (known == nullptr || known->name != architecture) return std::nullopt;
  const bool amd = architecture.starts_with("gfx");
  DeviceInfo info;
  info.backend = Api::hip;
  info.language = Language::hip;
  info.name = architecture;
  info.vendor = amd ? "AMD" : "NVIDIA";
  info.architecture = architecture;
  info.kind = DeviceKind::discrete_gpu;
  info.max_workgroup_invocations = 1024;
  info.max_workgroup_size = {1024, 1024, amd ? 1024U : 64U};
  info.max_grid = {2147483647, 65535, 65535};
  info.shared_memory_bytes = known->shared_kib << 10;
  info.subgroup_size = info.min_subgroup_size = info.max_subgroup_size = known->wave;
  info.max_argument_bytes = 4096;
  info.compute_units = known->units;
  info.memory_bytes = info.max_allocation_bytes = assumed_memory_bytes;
  info.unit_registers = known->unit_registers;
  info.unit_shared_memory_bytes = known->unit_shared_kib << 10;
  info.unit_threads = known->unit_threads;
  info.last_level_cache_bytes = std::uint64_t{known->cache_mib} << 20;
  info.f16_arithmetic = info.f16_storage = true;
  info.matrix_operations = hip_matrix_operations(architecture);
  return info;
}

}  // namespace greta::device
