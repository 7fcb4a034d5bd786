#include "runtime/device/vulkan/vulkan_backend.hpp"

#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <utility>

#include "runtime/device/vulkan/kernel.hpp"
#include "runtime/device/vulkan/performance_query.hpp"
#include "runtime/device/vulkan/vulkan_device.hpp"

namespace greta::device::vulkan {

namespace {

const PhysicalDevice& device_of(const Instance& instance, int index) {
  if (index >= 0 && static_cast<std::size_t>(index) < instance.devices().size()) {
    return instance.devices()[static_cast<std::size_t>(index)];
  }
  throw Refusal(Status::unavailable, fmt::format("there is no device vulkan:{}", index));
}

class VulkanBackend final : public Backend {
 public:
  Api api() const override { return Api::vulkan; }

  Probe probe() override {
    Probe probe;
    try {
      const auto found = instance();
      for (const auto& device : found->devices()) {
        probe.devices.push_back({device.info, device.usable, device.reason, device.compile_only});
      }
    } catch (const std::exception&) {
      probe.reason = current_failure().message;
      return probe;
    }
    probe.available = !probe.devices.empty();
    if (!probe.available) probe.reason = "no Vulkan driver lists a device";
    return probe;
  }

  Result<std::unique_ptr<Device>> open(int index, const OpenOptions& options) override {
    try {
      const auto observer = validation_observer();
      const bool validates = options.validation || observer != nullptr;
      const auto used =
          validates ? std::make_shared<Instance>(true, handler(options, observer)) : instance();
      PhysicalDevice physical = device_of(*used, index);
      if (!physical.usable && !(options.compile_only && physical.compile_only)) {
        throw Refusal(Status::unavailable,
                      fmt::format("{} is not usable: {}", physical.info.name, physical.reason));
      }
      if (options.emulated_matrices) emulate_matrices(physical);
      if (options.counters) prepare_counting(physical);
      auto context = std::make_shared<Context>(used, physical, options.transfer_deadline);
      if (observer != nullptr) observer->opened(physical.info);
      return std::unique_ptr<Device>(
          std::make_unique<VulkanDevice>(std::move(context), options.cache_directory));
    } catch (const std::exception&) {
      return current_failure();
    }
  }

 private:
  /// Returns what receives the messages of a device that is opened with validation.
  static Instance::MessageHandler handler(const OpenOptions& options,
                                          std::shared_ptr<const ValidationObserver> observer) {
    return [on_message = options.on_validation_message,
            observer = std::move(observer)](const ValidationMessage& message) {
      if (on_message) on_message(message.text);
      if (observer != nullptr) observer->said(message);
    };
  }

  /// Returns the instance without validation. An instance with a lost device is abandoned; the next
  /// caller gets a new one.
  std::shared_ptr<Instance> instance() {
    const std::lock_guard lock(mutex_);
    if (!instance_ || instance_->abandoned()) instance_ = std::make_shared<Instance>();
    return instance_;
  }

  std::mutex mutex_;
  std::shared_ptr<Instance> instance_;
};

}  // namespace

std::unique_ptr<Backend> create_backend() {
  return std::make_unique<VulkanBackend>();
}

Result<std::vector<std::string>> device_options(int index) {
  try {
    const auto instance = std::make_shared<Instance>();
    KernelSource none;
    add_matrix_macro(device_of(*instance, index), none);
    return none.options;
  } catch (const std::exception&) {
    return current_failure();
  }
}

Result<Spirv> translate(int index, KernelSource source) {
  try {
    const auto instance = std::make_shared<Instance>();
    add_matrix_macro(device_of(*instance, index), source);
    return compile_glsl(source);
  } catch (const std::exception&) {
    return current_failure();
  }
}

}  // namespace greta::device::vulkan

namespace greta::device {

Result<void> can_validate() {
  return vulkan::Instance::can_validate();
}

}  // namespace greta::device
