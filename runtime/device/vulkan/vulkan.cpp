#include "runtime/device/vulkan/vulkan.hpp"

#include <fmt/format.h>

#include <mutex>

namespace greta::device::vulkan {

namespace {

std::string name_of(VkResult result) {
  switch (result) {
    case VK_TIMEOUT:
      return "VK_TIMEOUT";
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
      return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_INITIALIZATION_FAILED:
      return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST:
      return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_LAYER_NOT_PRESENT:
      return "VK_ERROR_LAYER_NOT_PRESENT";
    case VK_ERROR_EXTENSION_NOT_PRESENT:
      return "VK_ERROR_EXTENSION_NOT_PRESENT";
    case VK_ERROR_FEATURE_NOT_PRESENT:
      return "VK_ERROR_FEATURE_NOT_PRESENT";
    case VK_ERROR_INCOMPATIBLE_DRIVER:
      return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VK_ERROR_TOO_MANY_OBJECTS:
      return "VK_ERROR_TOO_MANY_OBJECTS";
    default:
      return fmt::format("VkResult {}", static_cast<int>(result));
  }
}

Status status_of(VkResult result) {
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
      return Status::out_of_memory;
    case VK_ERROR_DEVICE_LOST:
      return Status::device_lost;
    case VK_ERROR_LAYER_NOT_PRESENT:
    case VK_ERROR_EXTENSION_NOT_PRESENT:
    case VK_ERROR_FEATURE_NOT_PRESENT:
    case VK_ERROR_INCOMPATIBLE_DRIVER:
    case VK_ERROR_INITIALIZATION_FAILED:
      return Status::unavailable;
    default:
      return Status::launch;
  }
}

std::mutex& loader_mutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

}  // namespace

void check(VkResult result, const char* what) {
  if (result == VK_SUCCESS) return;
  throw Refusal(status_of(result), fmt::format("{}: {}", what, name_of(result)));
}

void load_loader() {
  const std::lock_guard lock(loader_mutex());
  if (vkGetInstanceProcAddr != nullptr) return;
  if (volkInitialize() != VK_SUCCESS) {
    throw Refusal(Status::unavailable, "libvulkan.so.1, the Vulkan loader, was not found");
  }
}

void load_instance_functions(VkInstance instance) {
  // The loader's functions of core Vulkan work for every instance. Loading them again while other
  // threads call them would be a race.
  const std::lock_guard lock(loader_mutex());
  if (volkGetLoadedInstance() == VK_NULL_HANDLE) volkLoadInstanceOnly(instance);
}

}  // namespace greta::device::vulkan
