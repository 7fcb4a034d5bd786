#include "runtime/device/hip/describe.hpp"

#include <algorithm>

#include "runtime/device/hardware/architectures.hpp"
#include "runtime/device/hardware/known_gpus.hpp"
#include "runtime/device/system/input_file.hpp"
#include "runtime/device/text/strings.hpp"

namespace greta::device::hip {

void describe_gpu(DeviceInfo& info, const AttributeNumbers& numbers, const ReadAttribute& read) {
  const auto number = [&](int attribute) {
    return attribute == 0 ? 0U : static_cast<std::uint32_t>(std::max(0, read(attribute)));
  };
  info.language = Language::hip;
  info.kind =
      number(numbers.integrated) != 0 ? DeviceKind::integrated_gpu : DeviceKind::discrete_gpu;
  info.max_workgroup_invocations = number(numbers.max_threads_per_block);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    info.max_workgroup_size[axis] = number(numbers.max_block[axis]);
    info.max_grid[axis] = number(numbers.max_grid[axis]);
  }
  info.shared_memory_bytes =
      std::max(number(numbers.shared_per_block), number(numbers.shared_per_block_optin));
  info.subgroup_size = info.min_subgroup_size = info.max_subgroup_size = number(numbers.warp_size);
  info.subgroup_size_control = true;  // only one size exists
  info.max_argument_bytes = 4096;
  info.compute_units = number(numbers.multiprocessors);
  if (const auto known = architecture_info(info.architecture)) {
    info.unit_registers = known->unit_registers;
    info.unit_shared_memory_bytes = known->unit_shared_memory_bytes;
    info.unit_threads = known->unit_threads;
  } else {
    info.unit_registers = number(numbers.registers);
    info.unit_shared_memory_bytes = number(numbers.shared);
    info.unit_threads = number(numbers.threads);
  }
  info.last_level_cache_bytes = gpu_last_level_cache_bytes(info.name, info.architecture);
  info.f16_arithmetic = info.f16_storage = true;
  info.matrix_operations = hip_matrix_operations(info.architecture);
}

std::string pci_address(std::string_view reported) {
  std::string text = lowercase(reported);
  const auto domain = text.find(':');
  if (domain != std::string::npos && domain > 4) text.erase(0, domain - 4);
  return text;
}

std::string kernel_module_version(const std::string& name) {
  return first_line(read_system_file("/sys/module/" + name + "/version"));
}

}  // namespace greta::device::hip
