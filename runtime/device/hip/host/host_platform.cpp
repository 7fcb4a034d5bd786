#include <fmt/format.h>
#include <unistd.h>

#include "runtime/device/hardware/architectures.hpp"
#include "runtime/device/hardware/known_gpus.hpp"
#include "runtime/device/hip/host/functions.hpp"
#include "runtime/device/hip/host/host_attention_library.hpp"
#include "runtime/device/hip/host/host_compiler.hpp"
#include "runtime/device/hip/host/host_matrix_library.hpp"
#include "runtime/device/hip/host/modules.hpp"
#include "runtime/device/hip/host/sanitizer.hpp"
#include "runtime/device/hip/platform.hpp"
#include "runtime/device/text/hash.hpp"
#include "runtime/device/version.hpp"

namespace greta::device::hip {
namespace host {
namespace {

std::uint64_t memory_bytes() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

ProbedDevice describe(int device) {
  const HostProcessor processor = host_processor();
  const std::string model = processor.model.empty() ? "CPU" : processor.model;
  ProbedDevice probed;
  DeviceInfo& info = probed.info;
  info = *architecture_info(imitated(device));
  info.name = fmt::format("{} on {}", imitated(device), model);
  info.vendor = "GRETA";
  info.architecture = fmt::format("host-{}", imitated(device));
  info.driver = fmt::format("GRETA {}", version());
  info.kind = DeviceKind::cpu;
  info.watches_bounds = address_sanitizer().loaded();
  // Times under sanitizers are not comparable, so they belong to a different device.
  info.card.uuid = Hash().add(info.watches_bounds ? "sanitized" : "hip-host").add(model).hex();
  info.max_workgroup_invocations = max_block_threads;
  // Few, so that also small launches have several rows of workgroups, and more of them than tiles.
  info.planned_grid_row = 61;
  // On whatever processor, so few that resident workgroups take several tiles each, or share one.
  info.compute_units = 3;
  info.unit_registers = info.unit_shared_memory_bytes = info.unit_threads = 0;
  info.memory_bytes = info.max_allocation_bytes = memory_bytes();
  info.last_level_cache_bytes = processor.last_level_cache_bytes;
  info.timestamp_period_ns = 1;
  info.subgroup_size_control = true;
  info.unified_memory = true;
  info.matrix_operations = hip_matrix_operations(info.architecture);
  probed.usable = probed.sanitizes = true;
  probed.reason = "runs on the CPU, for checking kernels";
  return probed;
}

}  // namespace
}  // namespace host

Result<Platform> host_platform() {
  Platform platform;
  platform.name = "host";
  platform.functions = host::functions();
  platform.device_count = host::device_count;
  platform.describe = &host::describe;
  platform.create_compiler = &host::create_compiler;
  platform.open_matrix_library = &host::open_matrix_library;
  platform.open_attention_library = &host::open_attention_library;
  platform.read_statistics = &host::read_statistics;
  platform.argument_bytes = [](std::span<const std::byte>, const std::string&,
                               hipFunction_t function) -> std::optional<std::uint32_t> {
    return host::argument_bytes(function);
  };
  return platform;
}

}  // namespace greta::device::hip
