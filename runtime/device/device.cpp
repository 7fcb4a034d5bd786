#include "runtime/device/device.hpp"

namespace greta::device {

Result<std::string> Kernel::listing() const {
  return Failure{Status::unavailable, "there is no listing of this kernel's machine code", {}};
}

Result<std::unique_ptr<Kernel>> Device::load(const KernelSource&, std::span<const std::byte>) {
  return Failure{Status::unavailable, info().id() + " takes no ready code objects", {}};
}

}  // namespace greta::device
