#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/device/validation.hpp"
#include "runtime/device/vulkan/physical_device.hpp"

namespace greta::device::vulkan {

/// A VkInstance and its devices.
class Instance : public std::enable_shared_from_this<Instance> {
 public:
  using MessageHandler = std::function<void(const ValidationMessage&)>;

  /// Creates the instance. With validation, `on_message` receives each message of the validation
  /// layer. Throws `unavailable` when there is no loader, or no validation layer.
  explicit Instance(bool validation = false, MessageHandler on_message = {});
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const std::vector<PhysicalDevice>& devices() const { return devices_; }

  /// Handles the loss of one of this instance's devices. As the driver may use it forever, the
  /// instance is kept until the process ends. Later messages are dropped.
  void abandon();
  bool abandoned() const { return abandoned_; }

  /// Fails with `unavailable` where there is no loader, or no validation layer.
  static Result<void> can_validate();

 private:
  static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                                   VkDebugUtilsMessageTypeFlagsEXT,
                                                   const VkDebugUtilsMessengerCallbackDataEXT* data,
                                                   void* self);

  struct Messenger {
    VkInstance instance;
    VkDebugUtilsMessengerEXT handle;
  };
  struct Destroy {
    using pointer = VkInstance;
    void operator()(VkInstance instance) const;
  };
  struct DestroyMessenger {
    void operator()(Messenger* messenger) const;
  };

  MessageHandler on_message_;
  std::mutex message_mutex_;
  std::unique_ptr<VkInstance, Destroy> handle_;
  std::unique_ptr<Messenger, DestroyMessenger> messenger_;  // destroyed before the instance
  std::vector<PhysicalDevice> devices_;
  std::atomic<bool> abandoned_{false};
};

}  // namespace greta::device::vulkan
