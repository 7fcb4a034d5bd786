#pragma once

#include <cstddef>

#include "runtime/device/device.hpp"

namespace greta::device {

/// Copies between the memories of two devices, without the host's memory where the hardware can.
/// Devices of APIs that have such copies (HIP, CUDA) implement it.
class PeerCopies {
 public:
  virtual ~PeerCopies() = default;
  /// Lets this device reach the memory of `peer`, a device of the same driver. Returns whether it
  /// does so by itself (NVLink, Infinity Fabric, PCIe); otherwise the driver copies through the
  /// host. Fails with `unavailable` where the driver has no copies between devices, and with
  /// `invalid_argument` for the device itself or a device of another driver. Both calls fail with
  /// `unavailable` if the peer was lost.
  virtual Result<bool> reach(Device& peer) = 0;
  /// Records a copy in a stream of this device, from or to a buffer of a device that reach() was
  /// called for. Offsets and size are in bytes. The stream orders the copy with its own work alone,
  /// and a buffer of the peer must not be destroyed before the stream is synchronised.
  virtual Result<void> copy_between(Stream& stream, Buffer& to, std::size_t to_offset,
                                    const Buffer& from, std::size_t from_offset,
                                    std::size_t bytes) = 0;
};

/// Returns a device's copies to and from others. Fails with `unavailable` where its API has none.
Result<PeerCopies*> peer_copies(Device& device);

}  // namespace greta::device
