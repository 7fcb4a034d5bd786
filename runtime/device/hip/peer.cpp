#include <fmt/format.h>

#include "runtime/device/hip/hip_device.hpp"
#include "runtime/device/launch_checks.hpp"

/// The part of HipDevice that copies between devices.
namespace greta::device::hip {
namespace {

constexpr hipError_t hipErrorPeerAccessAlreadyEnabled = 704;

/// The other device's loss is not this one's, which stays usable.
void check_not_lost(const Context& other) {
  if (!other.lost()) return;
  throw Refusal(
      Status::unavailable,
      fmt::format("{} was lost by an earlier call and must be opened again", other.info().id()));
}

/// Returns the context of a buffer and the address of a byte, if the buffer is of this driver and
/// its device is not lost.
std::pair<const Context*, std::byte*> peer_range(const Context& context, const Buffer& buffer,
                                                 std::size_t offset, std::size_t bytes) {
  const auto* const known = dynamic_cast<const HipBuffer*>(&buffer);
  if (known == nullptr || &known->context()->platform() != &context.platform()) {
    throw Refusal(Status::invalid_argument, "the buffer belongs to a device of another driver");
  }
  check_not_lost(*known->context());
  check_range(buffer, offset, bytes);
  return {known->context(), known->pointer() + offset};
}

}  // namespace

Result<bool> HipDevice::reach(Device& peer) {
  return entered(*context_, [&]() -> Result<bool> {
    const Functions& hip = context_->functions();
    const auto* const other = dynamic_cast<const HipDevice*>(&peer);
    if (other == nullptr || &other->context_->platform() != &context_->platform() ||
        other->context_->device() == context_->device()) {
      throw Refusal(Status::invalid_argument,
                    fmt::format("{} is not another device of the driver of {}", peer.info().id(),
                                info().id()));
    }
    check_not_lost(*other->context_);
    if (!hip.can_access_peer || !hip.enable_peer_access || !hip.copy_peer_async) {
      throw Refusal(Status::unavailable, "the driver has no copies between devices");
    }
    int can = 0;
    context_->check(hip.can_access_peer(&can, context_->device(), other->context_->device()),
                    "hipDeviceCanAccessPeer");
    if (can == 0) return false;
    const hipError_t error = hip.enable_peer_access(context_->device(), other->context_->device());
    if (error != hipErrorPeerAccessAlreadyEnabled) {
      context_->check(error, "hipDeviceEnablePeerAccess");
    }
    return true;
  });
}

Result<void> HipDevice::copy_between(Stream& stream, Buffer& to, std::size_t to_offset,
                                     const Buffer& from, std::size_t from_offset,
                                     std::size_t bytes) {
  return guarded(*context_, [&]() -> Result<void> {
    auto* const own = dynamic_cast<HipStream*>(&stream);
    if (own == nullptr || own->context() != context_.get()) {
      throw Refusal(Status::invalid_argument, "the stream belongs to another device");
    }
    if (!context_->functions().copy_peer_async) {
      throw Refusal(Status::unavailable, "the driver has no copies between devices");
    }
    const auto [to_context, target] = peer_range(*context_, to, to_offset, bytes);
    const auto [from_context, source] = peer_range(*context_, from, from_offset, bytes);
    if (bytes > 0) {
      own->record_peer_copy({target, to_context->device(), source, from_context->device(), bytes});
    }
    return {};
  });
}

}  // namespace greta::device::hip
