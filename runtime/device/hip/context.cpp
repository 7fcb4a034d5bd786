#include "runtime/device/hip/context.hpp"

#include <fmt/format.h>

namespace greta::device::hip {

namespace {

/// Whether an error is sticky: the process can't use the device again until everything on it is
/// destroyed.
bool sticks(hipError_t error) {
  switch (error) {
    case 214:  // uncorrectable ECC error
    case 220:  // uncorrectable NVLink error
    case hipErrorIllegalAddress:
    case 702:  // the system's time limit for launches
    case 709:  // the context was destroyed
    case 710:  // an assertion in a kernel failed
    case 714:  // hardware stack error
    case 715:  // illegal instruction
    case 716:  // misaligned address
    case 717:  // invalid address space
    case 718:  // invalid program counter
    case hipErrorLaunchFailure:
      return true;
    default:
      return false;
  }
}

Status status_of(hipError_t error) {
  if (sticks(error)) return Status::device_lost;
  switch (error) {
    case hipErrorOutOfMemory:
      return Status::out_of_memory;
    case hipErrorNotInitialized:
    case hipErrorNoDevice:
    case hipErrorInvalidDevice:
    case 46:  // another process uses the device exclusively
    case hipErrorNotSupported:
      return Status::unavailable;
    default:
      return Status::launch;
  }
}

[[noreturn]] void refuse(const Functions& hip, hipError_t error, const char* what) {
  throw Refusal(status_of(error), fmt::format("{}: {}", what, describe_error(hip, error)));
}

}  // namespace

std::string describe_error(const Functions& hip, hipError_t error) {
  const std::string name = hip.error_name(error);
  const std::string text = hip.error_string(error);
  return text.empty() || text == name ? name : fmt::format("{} ({})", name, text);
}

std::uint64_t Card::open() {
  const std::lock_guard lock(mutex_);
  const Functions& hip = platform_->functions;
  // The reset may return the very failure that it clears.
  if (poisoned_) static_cast<void>(hip.reset_device(device_));
  const hipError_t error = hip.set_device(device_);
  if (error != hipSuccess) refuse(hip, error, "hipSetDevice");
  poisoned_ = false;
  return generation();
}

void Card::poison(std::uint64_t generation) {
  const std::lock_guard lock(mutex_);
  if (generation != generation_) return;  // an older Device failed, which is already lost
  poisoned_ = true;
  ++generation_;
}

Context::Context(std::shared_ptr<Card> card, DeviceInfo info, OpenOptions options,
                 VendorLibraries libraries)
    : card_(std::move(card)),
      generation_(card_->open()),
      info_(std::move(info)),
      options_(std::move(options)),
      libraries_(std::move(libraries)) {}

void Context::check(hipError_t error, const char* what) const {
  if (error == hipSuccess) return;
  if (sticks(error)) card_->poison(generation_);
  refuse(functions(), error, what);
}

}  // namespace greta::device::hip
