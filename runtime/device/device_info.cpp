#include "runtime/device/device_info.hpp"

#include "runtime/device/hash.hpp"

namespace greta {

std::string_view to_string(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::discrete_gpu:
      return "discrete GPU";
    case DeviceKind::integrated_gpu:
      return "integrated GPU";
    case DeviceKind::virtual_gpu:
      return "virtual GPU";
    case DeviceKind::cpu:
      return "CPU";
  }
  return "unknown";
}

std::string DeviceInfo::fingerprint() const {
  // Not the name: drivers put their own version into it ("llvmpipe (LLVM 15.0.6, 256 bits)").
  Hash hash;
  hash.add(backend).add(vendor).add(architecture).add(uuid).add(std::uint64_t{compute_units});
  return hash.hex();
}

}  // namespace greta
