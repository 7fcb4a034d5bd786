#include "runtime/device/peer.hpp"

namespace greta::device {

Result<PeerCopies*> peer_copies(Device& device) {
  if (auto* const found = dynamic_cast<PeerCopies*>(&device)) return found;
  return Failure{
      Status::unavailable, device.info().id() + ": its API has no copies between devices", {}};
}

}  // namespace greta::device
