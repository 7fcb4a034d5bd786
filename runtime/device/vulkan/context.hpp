#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "runtime/device/device.hpp"
#include "runtime/device/vulkan/instance.hpp"

namespace greta::device::vulkan {

/// A VkDevice, its functions and its queue. Every object of the device holds it by shared_ptr, so
/// objects may be destroyed in any order.
class Context {
 public:
  Context(std::shared_ptr<Instance> instance, const PhysicalDevice& physical,
          Deadline transfer_deadline);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  VkDevice handle() const { return handle_; }
  const VolkDeviceTable& vk() const { return vk_; }
  const PhysicalDevice& physical() const { return physical_; }
  const DeviceInfo& info() const { return physical_.info; }
  Deadline transfer_deadline() const { return transfer_deadline_; }

  /// Submits to the queue; thread-safe.
  void submit(const VkSubmitInfo2& batch);

  /// Returns true once a deadline has passed or the driver has lost the device. From then on none
  /// of its objects may be used or destroyed, because the hardware may use them forever.
  bool lost() const { return lost_.load(std::memory_order_relaxed); }
  void mark_lost();

 private:
  std::shared_ptr<Instance> instance_;
  PhysicalDevice physical_;
  Deadline transfer_deadline_;
  VkDevice handle_ = VK_NULL_HANDLE;
  VolkDeviceTable vk_{};
  VkQueue queue_ = VK_NULL_HANDLE;
  std::mutex queue_mutex_;
  std::atomic<bool> lost_{false};
};

/// Owns one object of a device. `destroy` is its vkDestroy function.
template <typename Type, auto destroy>
class Handle {
 public:
  Handle() = default;
  Handle(std::shared_ptr<Context> context, Type handle)
      : context_(std::move(context)), handle_(handle) {}
  ~Handle() { reset(); }
  Handle(Handle&& other) noexcept
      : context_(std::move(other.context_)),
        handle_(std::exchange(other.handle_, Type{VK_NULL_HANDLE})) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      reset();
      context_ = std::move(other.context_);
      handle_ = std::exchange(other.handle_, Type{VK_NULL_HANDLE});
    }
    return *this;
  }

  Type get() const { return handle_; }

 private:
  void reset() noexcept {
    if (handle_ == VK_NULL_HANDLE) return;
    const StallWatch watch;
    if (context_->lost()) {
      abandon(reinterpret_cast<std::uint64_t>(handle_));
    } else {
      (context_->vk().*destroy)(context_->handle(), handle_, nullptr);
    }
    handle_ = VK_NULL_HANDLE;
  }

  std::shared_ptr<Context> context_;
  Type handle_ = VK_NULL_HANDLE;
};

/// Calls `create`, one of the device's vkCreate functions, and returns an owner of the new object.
template <typename Owner, auto create, typename Info>
Owner make(const std::shared_ptr<Context>& context, const Info& info, const char* what) {
  auto handle = decltype(std::declval<Owner>().get()){VK_NULL_HANDLE};
  check((context->vk().*create)(context->handle(), &info, nullptr, &handle), what);
  return Owner(context, handle);
}

/// Does the same as guarded(), for calls that a compile-only device can't execute.
template <typename Body>
auto executing(Context& context, Body&& body) -> decltype(body()) {
  return guarded(context, [&]() -> decltype(body()) {
    if (context.physical().compile_only) {
      throw Refusal(Status::unavailable,
                    context.info().name + " was opened to compile: it executes nothing");
    }
    return body();
  });
}

}  // namespace greta::device::vulkan
