#include "runtime/device/device_info.hpp"

#include "runtime/device/hash.hpp"

namespace greta::device {

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
  // The name is left out because drivers put their own version into it ("llvmpipe (LLVM 15.0.6, 256
  // bits)").
  Hash hash;
  hash.add(to_string(backend))
      .add(vendor)
      .add(architecture)
      .add(uuid)
      .add(std::uint64_t{compute_units});
  return hash.hex();
}

bool same_card(const DeviceInfo& a, const DeviceInfo& b) {
  if (a.is_cpu() || b.is_cpu()) return a.id() == b.id();
  if (!a.pci_address.empty() && !b.pci_address.empty()) return a.pci_address == b.pci_address;
  if (!a.uuid.empty() && !b.uuid.empty()) return a.uuid == b.uuid;
  return a.id() == b.id();
}

}  // namespace greta::device
