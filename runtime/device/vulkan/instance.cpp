#include "runtime/device/vulkan/instance.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace greta::device::vulkan {

namespace {

constexpr const char* validation_layer = "VK_LAYER_KHRONOS_validation";

bool has_layer(const char* name) {
  std::uint32_t count = 0;
  check(vkEnumerateInstanceLayerProperties(&count, nullptr), "vkEnumerateInstanceLayerProperties");
  std::vector<VkLayerProperties> layers(count);
  check(vkEnumerateInstanceLayerProperties(&count, layers.data()),
        "vkEnumerateInstanceLayerProperties");
  return std::any_of(layers.begin(), layers.end(), [&](const VkLayerProperties& layer) {
    return std::strcmp(layer.layerName, name) == 0;
  });
}

}  // namespace

void Instance::Destroy::operator()(VkInstance instance) const {
  vkDestroyInstance(instance, nullptr);
}

void Instance::DestroyMessenger::operator()(Messenger* messenger) const {
  const auto destroy = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
      vkGetInstanceProcAddr(messenger->instance, "vkDestroyDebugUtilsMessengerEXT"));
  destroy(messenger->instance, messenger->handle, nullptr);
  delete messenger;
}

VkBool32 Instance::on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                              VkDebugUtilsMessageTypeFlagsEXT,
                              const VkDebugUtilsMessengerCallbackDataEXT* data, void* self) {
  auto* const instance = static_cast<Instance*>(self);
  const std::lock_guard lock(instance->message_mutex_);
  if (instance->on_message_) {
    instance->on_message_({.error = (severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT) != 0,
                           .id = data->pMessageIdName != nullptr ? data->pMessageIdName : "",
                           .text = data->pMessage});
  }
  return VK_FALSE;
}

Result<void> Instance::can_validate() {
  try {
    load_loader();
    if (has_layer(validation_layer)) return {};
    return Failure{Status::unavailable, std::string(validation_layer) + " is not installed", {}};
  } catch (const std::exception&) {
    return current_failure();
  }
}

Instance::Instance(bool validation, MessageHandler on_message)
    : on_message_(std::move(on_message)) {
  load_loader();
  if (validation) can_validate().value();
  const VkApplicationInfo application{.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                      .pApplicationName = "GRETA",
                                      .pEngineName = "GRETA",
                                      .apiVersion = VK_API_VERSION_1_3};
  const VkDebugUtilsMessengerCreateInfoEXT messenger{
      .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
      .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                         VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
      .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
      .pfnUserCallback = &Instance::on_message,
      .pUserData = this};
  const VkValidationFeatureEnableEXT synchronization =
      VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
  const VkValidationFeaturesEXT checks{.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
                                       .pNext = &messenger,
                                       .enabledValidationFeatureCount = 1,
                                       .pEnabledValidationFeatures = &synchronization};
  const char* const extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME,
                                    VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME};
  VkInstanceCreateInfo create{.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                              .pApplicationInfo = &application};
  if (validation) {
    create.pNext = &checks;
    create.enabledLayerCount = 1;
    create.ppEnabledLayerNames = &validation_layer;
    create.enabledExtensionCount = 2;
    create.ppEnabledExtensionNames = extensions;
  }
  VkInstance created = VK_NULL_HANDLE;
  const VkResult result = vkCreateInstance(&create, nullptr, &created);
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER) {
    throw Refusal(Status::unavailable, "no Vulkan driver is installed");
  }
  check(result, "vkCreateInstance");
  load_instance_functions(created);
  handle_.reset(created);
  if (validation) {
    // An extension's function must come from an instance that has the extension.
    const auto create_messenger = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
        vkGetInstanceProcAddr(created, "vkCreateDebugUtilsMessengerEXT"));
    VkDebugUtilsMessengerEXT installed = VK_NULL_HANDLE;
    check(create_messenger(created, &messenger, nullptr, &installed),
          "vkCreateDebugUtilsMessengerEXT");
    messenger_.reset(new Messenger{created, installed});
  }

  std::uint32_t count = 0;
  check(vkEnumeratePhysicalDevices(created, &count, nullptr), "vkEnumeratePhysicalDevices");
  std::vector<VkPhysicalDevice> handles(count);
  check(vkEnumeratePhysicalDevices(created, &count, handles.data()), "vkEnumeratePhysicalDevices");
  for (std::uint32_t index = 0; index < count; ++index) {
    devices_.push_back(describe(created, handles[index], static_cast<int>(index)));
  }
}

void Instance::abandon() {
  static auto* const mutex = new std::mutex;
  static auto* const kept = new std::vector<std::shared_ptr<Instance>>;
  {
    const std::lock_guard lock(message_mutex_);
    on_message_ = nullptr;
  }
  const std::lock_guard lock(*mutex);
  if (abandoned_.exchange(true)) return;
  kept->push_back(shared_from_this());
}

}  // namespace greta::device::vulkan
