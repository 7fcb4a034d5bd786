#include "runtime/device/device.hpp"

namespace greta::device {

Result<std::string> Kernel::listing() const {
  return Failure{Status::unavailable, "there is no listing of this kernel's machine code", {}};
}

Result<void> Stream::write_constant(const Kernel&, std::size_t, std::uint64_t, std::size_t) {
  return Failure{Status::unavailable, "kernels have no constant memory that can be written", {}};
}

Result<void> Stream::encode(const TensorMap&, std::uint64_t, std::byte*) {
  return Failure{Status::unavailable, "kernels have no tensor maps", {}};
}

Result<std::unique_ptr<Kernel>> Device::load(const KernelSource&, std::span<const std::byte>) {
  return Failure{Status::unavailable, info().id() + " takes no ready code objects", {}};
}

}  // namespace greta::device
