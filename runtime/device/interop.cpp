#include "runtime/device/interop.hpp"

namespace greta::device {

Result<Interop*> interop(Device& device) {
  if (auto* const found = dynamic_cast<Interop*>(&device)) return found;
  return Failure{Status::unavailable,
                 device.info().id() + " can't use memory or streams of other libraries",
                 {}};
}

}  // namespace greta::device
