#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "runtime/device/device.hpp"
#include "runtime/device/hip/platform.hpp"
#include "runtime/device/refusal.hpp"

namespace greta::device::hip {

/// A device of a platform, shared by every Device that this process has opened on it. A sticky
/// failure affects all of them.
class Card {
 public:
  Card(std::shared_ptr<const Platform> platform, int device)
      : platform_(std::move(platform)), device_(device) {}

  const Platform& platform() const { return *platform_; }
  int device() const { return device_; }

  /// Makes the card usable. After a sticky failure, it first destroys everything on the card.
  /// Returns the generation of the Devices that are opened now. Throws Refusal.
  std::uint64_t open();
  /// Ends a generation: its Devices are lost.
  void poison(std::uint64_t generation);
  std::uint64_t generation() const { return generation_.load(std::memory_order_relaxed); }

 private:
  std::shared_ptr<const Platform> platform_;
  int device_;
  std::mutex mutex_;
  bool poisoned_ = false;
  std::atomic<std::uint64_t> generation_{0};
};

/// A vendor's open libraries; nullptr where there is none.
struct VendorLibraries {
  std::shared_ptr<const MatrixLibrary> matrix{};
  std::shared_ptr<const AttentionLibrary> attention{};
};

/// The state that the objects of one open Device share. Each holds it by shared_ptr, so that they
/// may be destroyed in any order.
class Context {
 public:
  Context(std::shared_ptr<Card> card, DeviceInfo info, OpenOptions options,
          VendorLibraries libraries = {});

  const Platform& platform() const { return card_->platform(); }
  int device() const { return card_->device(); }  ///< number within the platform
  const Functions& functions() const { return platform().functions; }
  const DeviceInfo& info() const { return info_; }
  const OpenOptions& options() const { return options_; }
  /// Return the vendor's libraries of matrix products and of attention, or nullptr.
  const std::shared_ptr<const MatrixLibrary>& matrix_library() const { return libraries_.matrix; }
  const std::shared_ptr<const AttentionLibrary>& attention_library() const {
    return libraries_.attention;
  }

  /// Makes this device the calling thread's current one. Throws Refusal.
  void enter() const { check(set_device(), "hipSetDevice"); }
  hipError_t set_device() const { return functions().set_device(card_->device()); }
  /// Throws a Refusal that names the call, unless it succeeded.
  void check(hipError_t error, const char* what) const;

  /// Returns true once a deadline has passed or the card has failed. From then on none of the
  /// device's objects may be used or destroyed, because the hardware may use them forever.
  bool lost() const {
    return lost_.load(std::memory_order_relaxed) || card_->generation() != generation_;
  }
  void mark_lost() { lost_ = true; }

 private:
  std::shared_ptr<Card> card_;
  std::uint64_t generation_;
  DeviceInfo info_;
  OpenOptions options_;
  VendorLibraries libraries_;
  std::atomic<bool> lost_{false};
};

/// Does the same as guarded(), with the context's device as the current one.
template <typename Body>
auto entered(Context& context, Body&& body) -> decltype(body()) {
  return guarded(context, [&] {
    context.enter();
    return body();
  });
}

/// Owns one object of a device. `destroy` is the function that destroys it.
template <typename Type, hipError_t (*Functions::*destroy)(Type)>
class Handle {
 public:
  Handle() = default;
  Handle(std::shared_ptr<Context> context, Type handle)
      : context_(std::move(context)), handle_(handle) {}
  ~Handle() { reset(); }
  Handle(Handle&& other) noexcept
      : context_(std::move(other.context_)), handle_(std::exchange(other.handle_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      reset();
      context_ = std::move(other.context_);
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }

  Type get() const { return handle_; }

 private:
  void reset() noexcept {
    if (handle_ == nullptr) return;
    const StallWatch watch;
    if (context_->lost()) {
      abandon(reinterpret_cast<std::uint64_t>(handle_));
    } else if (context_->set_device() == hipSuccess) {
      static_cast<void>((context_->functions().*destroy)(handle_));
    }
    handle_ = nullptr;
  }

  std::shared_ptr<Context> context_;
  Type handle_ = nullptr;
};

}  // namespace greta::device::hip
