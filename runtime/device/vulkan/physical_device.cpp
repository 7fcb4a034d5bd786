#include "runtime/device/vulkan/physical_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/device/hardware/architectures.hpp"
#include "runtime/device/hardware/known_gpus.hpp"
#include "runtime/device/text/hash.hpp"
#include "runtime/device/vulkan/features.hpp"
#include "runtime/device/vulkan/glsl_compiler.hpp"

namespace greta::device::vulkan {

namespace {

/// All properties that GRETA reads, as one chain. Structures of absent extensions are left out.
struct Properties {
  VkPhysicalDeviceShaderSMBuiltinsPropertiesNV nvidia{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV};
  VkPhysicalDeviceShaderCoreProperties2AMD amd2{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_2_AMD};
  VkPhysicalDeviceShaderCorePropertiesAMD amd{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD};
  VkPhysicalDevicePCIBusInfoPropertiesEXT pci{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT};
  VkPhysicalDeviceVulkan13Properties v13{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES};
  VkPhysicalDeviceVulkan12Properties v12{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES, .pNext = &v13};
  VkPhysicalDeviceVulkan11Properties v11{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES, .pNext = &v12};
  VkPhysicalDeviceProperties2 core{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                   .pNext = &v11};

  Properties(VkPhysicalDevice device, const std::set<std::string>& extensions) {
    const auto chain = [&](const char* extension, auto& structure) {
      if (!extensions.contains(extension)) return;
      structure.pNext = v13.pNext;
      v13.pNext = &structure;
    };
    chain(VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME, nvidia);
    chain(VK_AMD_SHADER_CORE_PROPERTIES_2_EXTENSION_NAME, amd2);
    chain(VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME, amd);
    chain(VK_EXT_PCI_BUS_INFO_EXTENSION_NAME, pci);
    vkGetPhysicalDeviceProperties2(device, &core);
  }
  Properties(const Properties&) = delete;
  Properties& operator=(const Properties&) = delete;

  const VkPhysicalDeviceLimits& limits() const { return core.properties.limits; }
  std::uint32_t compute_units() const {
    if (amd2.activeComputeUnitCount != 0) return amd2.activeComputeUnitCount;
    if (nvidia.shaderSMCount != 0) return nvidia.shaderSMCount;
    return amd.shaderEngineCount * amd.shaderArraysPerEngineCount * amd.computeUnitsPerShaderArray;
  }
};

std::set<std::string> extensions_of(VkPhysicalDevice device) {
  std::uint32_t count = 0;
  check(vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr),
        "vkEnumerateDeviceExtensionProperties");
  std::vector<VkExtensionProperties> properties(count);
  check(vkEnumerateDeviceExtensionProperties(device, nullptr, &count, properties.data()),
        "vkEnumerateDeviceExtensionProperties");
  std::set<std::string> names;
  for (const auto& extension : properties) names.insert(extension.extensionName);
  return names;
}

DeviceKind kind_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return DeviceKind::discrete_gpu;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return DeviceKind::integrated_gpu;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return DeviceKind::cpu;
    default:
      return DeviceKind::virtual_gpu;
  }
}

std::string vendor_of(std::uint32_t id) {
  switch (id) {
    case 0x10de:
      return "NVIDIA";
    case 0x1002:
      return "AMD";
    case 0x8086:
      return "Intel";
    case 0x13b5:
      return "ARM";
    case 0x5143:
      return "Qualcomm";
    case 0x106b:
      return "Apple";
    case VK_VENDOR_ID_MESA:
      return "Mesa";
    default:
      return fmt::format("vendor {:#06x}", id);
  }
}

/// Chooses a compute queue family with timestamps. A family without graphics is preferred, since
/// its work does not share a queue with a display's.
void choose_queue(PhysicalDevice& device) {
  std::uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(device.handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(device.handle, &count, families.data());
  int best = 0;
  for (std::uint32_t family = 0; family < count; ++family) {
    const auto& properties = families[family];
    if ((properties.queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) continue;
    if (properties.timestampValidBits == 0 || properties.queueCount == 0) continue;
    const int rank = (properties.queueFlags & VK_QUEUE_GRAPHICS_BIT) == 0 ? 2 : 1;
    if (rank <= best) continue;
    best = rank;
    device.queue_family = family;
    device.timestamp_bits = properties.timestampValidBits;
  }
}

void describe_identity(DeviceInfo& info, const Properties& properties) {
  const auto& core = properties.core.properties;
  info.backend = Api::vulkan;
  info.name = core.deviceName;
  info.vendor = vendor_of(core.vendorID);
  info.kind = kind_of(core.deviceType);
  info.driver = fmt::format("{} {}", properties.v12.driverName, properties.v12.driverInfo);
  info.compiler = glsl_compiler_version();
  for (const auto byte : properties.v11.deviceUUID) info.card.uuid += fmt::format("{:02x}", byte);
  if (properties.pci.pciBus != 0 || properties.pci.pciDevice != 0) {
    info.card.pci_address =
        fmt::format("{:04x}:{:02x}:{:02x}.{:x}", properties.pci.pciDomain, properties.pci.pciBus,
                    properties.pci.pciDevice, properties.pci.pciFunction);
  }
  info.compute_units = properties.compute_units();
  info.architecture = gpu_architecture(info.name);
  info.last_level_cache_bytes = gpu_last_level_cache_bytes(info.name, info.architecture);
  if (!info.is_cpu()) return;
  // A CPU device's UUID is derived from the driver's version; the processor identifies the hardware
  // better.
  const HostProcessor host = host_processor();
  const bool lavapipe = properties.v12.driverID == VK_DRIVER_ID_MESA_LLVMPIPE;
  if (lavapipe) info.architecture = "lavapipe";
  info.card.uuid = Hash().add(host.model).add(std::uint64_t{host.cores}).hex();
  info.compute_units = host.cores;
  info.last_level_cache_bytes = host.last_level_cache_bytes;
}

void describe_limits(PhysicalDevice& device, const Properties& properties) {
  DeviceInfo& info = device.info;
  const auto& limits = properties.limits();
  info.max_workgroup_invocations = limits.maxComputeWorkGroupInvocations;
  std::copy_n(limits.maxComputeWorkGroupSize, 3, info.max_workgroup_size.begin());
  std::copy_n(limits.maxComputeWorkGroupCount, 3, info.max_grid.begin());
  info.shared_memory_bytes = limits.maxComputeSharedMemorySize;
  info.max_argument_bytes = std::min(limits.maxPushConstantsSize, most_push_bytes);
  if (std::isfinite(limits.timestampPeriod)) {  // null hardware reports infinity
    info.timestamp_period_ns = static_cast<double>(limits.timestampPeriod);
  }
  info.subgroup_size = properties.v11.subgroupSize;
  info.min_subgroup_size = info.max_subgroup_size = info.subgroup_size;
  for (std::uint32_t heap = 0; heap < device.memory.memoryHeapCount; ++heap) {
    if ((device.memory.memoryHeaps[heap].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) == 0) continue;
    info.memory_bytes =
        std::max<std::uint64_t>(info.memory_bytes, device.memory.memoryHeaps[heap].size);
  }
  info.max_allocation_bytes =
      std::min({info.memory_bytes, properties.v11.maxMemoryAllocationSize,
                properties.v13.maxBufferSize != 0 ? properties.v13.maxBufferSize : UINT64_MAX});
}

void describe_features(PhysicalDevice& device, const Features& features,
                       const Properties& properties) {
  DeviceInfo& info = device.info;
  info.f16_arithmetic = features.f16_arithmetic();
  info.f16_storage = features.f16_storage();
  info.subgroup_size_control =
      features.subgroup_size_control() &&
      (properties.v13.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  if (info.subgroup_size_control) {
    info.min_subgroup_size = properties.v13.minSubgroupSize;
    info.max_subgroup_size = properties.v13.maxSubgroupSize;
    device.max_workgroup_subgroups = properties.v13.maxComputeWorkgroupSubgroups;
  }
  device.full_subgroups = features.full_subgroups();
  device.statistics = features.statistics();
  device.driver = properties.v12.driverID;
  device.performance_queries = features.performance_queries();
  info.unified_memory = info.is_cpu() || info.kind == DeviceKind::integrated_gpu;
}

/// Whether this is null hardware: Mesa's AMD driver can pretend to have any GPU in order to compile
/// for it, and executes nothing.
bool is_null_hardware(const PhysicalDevice& device, const Properties& properties) {
  if (properties.v12.driverID != VK_DRIVER_ID_MESA_RADV) return false;
  return device.info.card.pci_address.empty() ||
         device.info.name.find("Null hardware") != std::string::npos;
}

/// Adds properties that Vulkan does not report, and those that null hardware can't report. Kernels
/// for null hardware are compiled as for the largest device of its architecture.
void describe_hidden(DeviceInfo& info, bool null_hardware) {
  constexpr std::uint64_t assumed_memory_bytes = std::uint64_t{8} << 30;
  const auto known = architecture_info(info.architecture);
  if (known) {
    info.unit_registers = known->unit_registers;
    info.unit_shared_memory_bytes = known->unit_shared_memory_bytes;
    info.unit_threads = known->unit_threads;
  }
  if (!null_hardware) return;
  if (known) info.compute_units = known->compute_units;
  info.memory_bytes = info.max_allocation_bytes = assumed_memory_bytes;
}

}  // namespace

void emulate_matrices(PhysicalDevice& device) {
  if (!device.info.is_cpu() || !device.matrix_macro.empty()) return;
  device.matrix_macro = matrix_macro(CooperativeMatrix::emulated);
  device.info.matrix_operations = emulated_operations();
}

PhysicalDevice describe(VkInstance instance, VkPhysicalDevice handle, int index) {
  PhysicalDevice device;
  device.handle = handle;
  device.info.index = index;
  VkPhysicalDeviceProperties basic{};
  vkGetPhysicalDeviceProperties(handle, &basic);
  device.info.backend = Api::vulkan;
  device.info.name = basic.deviceName;
  device.info.vendor = vendor_of(basic.vendorID);
  device.info.kind = kind_of(basic.deviceType);
  if (basic.apiVersion < VK_API_VERSION_1_3) {
    device.reason =
        fmt::format("its driver has Vulkan {}.{}, GRETA needs 1.3",
                    VK_API_VERSION_MAJOR(basic.apiVersion), VK_API_VERSION_MINOR(basic.apiVersion));
    return device;
  }
  device.extensions = extensions_of(handle);
  const Properties properties(handle, device.extensions);
  const Features features(handle, device.extensions);
  vkGetPhysicalDeviceMemoryProperties(handle, &device.memory);
  choose_queue(device);
  describe_identity(device.info, properties);
  describe_limits(device, properties);
  describe_features(device, features, properties);
  device.matrix_macro = matrix_macro(features.cooperative_matrix());
  device.info.matrix_operations =
      matrix_operations(instance, handle, features.cooperative_matrix(), features.bf16_matrices());

  describe_hidden(device.info, is_null_hardware(device, properties));

  if (const std::string missing = features.missing(); !missing.empty()) {
    device.reason = "it lacks " + missing;
  } else if (is_null_hardware(device, properties)) {
    device.compile_only = true;
    device.reason = "Mesa's null hardware: it compiles kernels but executes nothing";
  } else if (device.timestamp_bits == 0) {
    device.reason = "it has no compute queue with timestamps";
  } else {
    device.usable = true;
    if (device.info.is_cpu()) device.reason = "runs on the CPU";
  }
  return device;
}

}  // namespace greta::device::vulkan
