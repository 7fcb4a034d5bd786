#include "kernels/prior/unit_rates.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "kernels/planning/device_limits.hpp"
#include "runtime/device/hardware/architectures.hpp"

namespace greta::kernels {
namespace {

struct ArchitectureRates {
  std::string_view architecture;  ///< or the beginning of its name
  double matrix_flops, vector_flops, cache_bytes, memory_bytes, latency;
};

// The more specific names come first.
constexpr ArchitectureRates architectures[] = {
    {"sm_90", 4096, 256, 32, 18, 700},   // H100, H200
    {"sm_80", 2048, 128, 48, 10, 600},   // A100
    {"sm_", 1024, 256, 32, 7, 600},      // cards for workstations
    {"gfx950", 4096, 256, 64, 13, 900},  // MI355X
    {"gfx942", 2048, 256, 64, 8, 900},   // MI300X
    {"gfx90a", 1024, 128, 64, 9, 800},   // MI200
    {"gfx908", 1024, 128, 64, 7, 800},   // MI100
    {"gfx906", 0, 128, 64, 9, 800},      // MI50
    {"gfx11", 512, 256, 64, 4, 800},     // RX 7000
    {"gfx12", 1024, 256, 64, 4, 800},    // RX 9000
    {"gfx", 0, 128, 64, 4, 800},
};

}  // namespace

UnitRates unit_rates(const DeviceInfo& device) {
  UnitRates rates;
  rates.units = static_cast<double>(busy_workgroups(device));
  rates.registers = static_cast<double>(register_file(device));
  rates.thread_registers = static_cast<double>(thread_registers(device));
  if (device.unit_threads > 0) rates.threads = device.unit_threads;
  const auto shared = std::max(device.unit_shared_memory_bytes, device.shared_memory_bytes);
  if (shared > 0) rates.shared_memory = shared;
  std::string_view name = device.architecture;
  if (name.starts_with("host-")) name.remove_prefix(5);
  const auto row = std::find_if(
      std::begin(architectures), std::end(architectures),
      [name](const ArchitectureRates& known) { return name.starts_with(known.architecture); });
  if (!device.is_cpu() && overlaps_launches(device.architecture)) {
    rates.next_launch = 0.6;  // results/2026-12-01-nvidia-h200-overlap-in-plans
  }
  if (vectorising_cpu(device)) {  // a core with 8 lanes runs a workgroup's threads one by one
    rates.vector_flops = 16;
    rates.lanes = 8;
    rates.shared_bytes = 64;
    rates.cache_bytes = 32;
    rates.memory_bytes = 4;
    rates.latency = 50;
    rates.launch = 50000;
  } else if (row != std::end(architectures)) {
    rates.matrix_flops = row->matrix_flops;
    rates.vector_flops = row->vector_flops;
    rates.cache_bytes = row->cache_bytes;
    rates.memory_bytes = row->memory_bytes;
    rates.latency = row->latency;
  }
  return rates;
}

}  // namespace greta::kernels
