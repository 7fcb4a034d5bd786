#include "runtime/device/vulkan/context.hpp"

#include "runtime/device/telemetry.hpp"
#include "runtime/device/vulkan/features.hpp"

namespace greta::device::vulkan {

Context::Context(std::shared_ptr<Instance> instance, const PhysicalDevice& physical,
                 Deadline transfer_deadline)
    : instance_(std::move(instance)), physical_(physical), transfer_deadline_(transfer_deadline) {
  const Features features(physical.handle, physical.extensions, physical.counts);
  const float priority = 1;
  const VkDeviceQueueCreateInfo queue{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                      .queueFamilyIndex = physical.queue_family,
                                      .queueCount = 1,
                                      .pQueuePriorities = &priority};
  const VkDeviceCreateInfo create{
      .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
      .pNext = features.chain(),
      .queueCreateInfoCount = 1,
      .pQueueCreateInfos = &queue,
      .enabledExtensionCount = static_cast<std::uint32_t>(features.extensions().size()),
      .ppEnabledExtensionNames = features.extensions().data()};
  check(vkCreateDevice(physical.handle, &create, nullptr, &handle_), "vkCreateDevice");
  volkLoadDeviceTable(&vk_, handle_);
  vk_.vkGetDeviceQueue(handle_, physical.queue_family, 0, &queue_);
}

Context::~Context() {
  const StallWatch watch;
  if (lost()) {
    abandon(reinterpret_cast<std::uint64_t>(handle_));
  } else {
    vk_.vkDestroyDevice(handle_, nullptr);
  }
}

void Context::submit(const VkSubmitInfo2& batch) {
  telemetry::count("device.submissions");
  const std::lock_guard lock(queue_mutex_);
  try {
    check(vk_.vkQueueSubmit2(queue_, 1, &batch, VK_NULL_HANDLE), "vkQueueSubmit2");
  } catch (const Refusal& refusal) {
    // Whatever the reason, the recorded work is lost, and later work would run without it.
    throw Refusal(Status::device_lost, refusal.failure().message);
  }
}

void Context::mark_lost() {
  lost_ = true;
  instance_->abandon();
}

}  // namespace greta::device::vulkan
