#include "kernels/planning/device_limits.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "runtime/device/hardware/architectures.hpp"

namespace greta::kernels {
namespace {

bool is_rdna(const DeviceInfo& device) {
  return device.architecture.find("gfx1") != std::string::npos;
}

}  // namespace

bool vectorising_cpu(const DeviceInfo& device) {
  return device.is_cpu() && device.language == Language::glsl;
}

bool compiled_by_nvrtc(const DeviceInfo& device) {
  return device.vendor == "NVIDIA" && device.language == Language::hip;
}

std::int64_t busy_workgroups(const DeviceInfo& device) {
  return device.compute_units > 0 ? device.compute_units : 32;
}

std::int64_t register_file(const DeviceInfo& device) {
  return device.unit_registers > 0 ? device.unit_registers : 65536;
}

std::int64_t thread_registers(const DeviceInfo& device) {
  if (device.vendor == "NVIDIA") return 255;
  return matrix_cores(device.architecture) == MatrixCores::mfma ? 512 : 256;
}

std::int64_t workgroup_registers(const DeviceInfo& device) {
  return (is_rdna(device) ? 2 : 1) * register_file(device);
}

std::int64_t scheduled_threads(const DeviceInfo& device) {
  const std::int64_t subgroup = device.subgroup_size > 0 ? device.subgroup_size : 32;
  return (is_rdna(device) ? 2 : 4) * subgroup;
}

std::int64_t most_threads(const DeviceInfo& device) {
  return std::min(device.max_workgroup_invocations, device.max_workgroup_size[0]);
}

std::vector<int> die_counts(const DeviceInfo& device) {
  const int all = accelerator_dies(device);
  return all > 1 ? std::vector{1, all} : std::vector{1};
}

std::int64_t most_workgroups(const DeviceInfo& device) {
  const std::int64_t x = device.max_grid[0], y = device.max_grid[1];
  return std::min<std::int64_t>(x * y, 0x7fffffff);
}

std::int64_t most_workspace(const DeviceInfo& device) {
  return static_cast<std::int64_t>(std::min(device.memory_bytes / 4, device.max_allocation_bytes));
}

std::vector<int> vector_widths(DType type) {
  std::vector<int> widths;
  for (int width = 1; width <= 8 && width * bits_of(type) <= 128; width *= 2)
    widths.push_back(width);
  return widths;
}

int widest_vector(DType type, std::int64_t stride, std::int64_t elements) {
  int width = vector_widths(type).back();
  while (stride % width != 0 || elements % width != 0) width /= 2;
  return width;
}

void append(std::vector<Constraint>& constraints, std::vector<Constraint> more) {
  std::move(more.begin(), more.end(), std::back_inserter(constraints));
}

Constraint register_constraint(const DeviceInfo& device, std::string_view what,
                               const Expression& least, const Expression& threads) {
  return {"registers",
          fmt::format("{} need more than {} registers of a thread, or {} of a workgroup", what,
                      thread_registers(device), workgroup_registers(device)),
          least <= register_limit(device, threads)};
}

Constraint loop_limit(const Expression& iterations, std::int64_t length) {
  return {"loop_limit",
          fmt::format("the CPU driver runs 65535 iterations of loops: too few for {}", length),
          iterations < most_iterations};
}

Constraint storage_constraint(DType in, DType out, const DeviceInfo& device) {
  const DType small = bits_of(in) < 32 ? in : out;
  const bool good = device.f16_storage || bits_of(small) == 32;
  return {"storage", fmt::format("the device can't load and store {}", to_string(small)), good};
}

Result<void> check_count(const Problem& problem, std::string_view named,
                         const std::vector<std::string>& dimensions) {
  constexpr std::int64_t most = 2147483647;
  std::int64_t left = most;
  for (const std::string& name : dimensions) left /= problem.dim(name);
  if (left > 0) return {};
  return bad_field(std::string(named), std::to_string(problem.dim(named)),
                   fmt::format("{} must not exceed {}", fmt::join(dimensions, " x "), most));
}

}  // namespace greta::kernels
