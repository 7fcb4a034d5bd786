#include "runtime/device/device.hpp"

namespace greta {

Result<std::string> Kernel::listing() const {
  return Failure{Status::unavailable, "there is no listing of this kernel's machine code", {}};
}

// Until every backend has graphs.
Result<void> Stream::replay(const Graph&) {
  return Failure{Status::unavailable, "this backend has no graphs", {}};
}

Result<std::unique_ptr<Graph>> Device::create_graph(const std::function<Result<void>(Stream&)>&) {
  return Failure{Status::unavailable, "this backend has no graphs", {}};
}

Result<std::unique_ptr<Kernel>> Device::load(const KernelSource&, std::span<const std::byte>) {
  return Failure{Status::unavailable, info().id() + " takes no ready code objects", {}};
}

}  // namespace greta
