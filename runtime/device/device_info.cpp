#include "runtime/device/device_info.hpp"

#include "runtime/device/text/hash.hpp"

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

namespace {

/// Returns the nominal size of a GPU's own memory in GiB. Drivers report it without what they
/// reserve, whose size differs between versions and APIs.
std::uint64_t nominal_memory_gib(std::uint64_t bytes) {
  constexpr std::uint64_t most_of_fine_steps = 32, coarse_step = 8;
  const std::uint64_t gib = (bytes >> 30) + ((bytes & ((std::uint64_t{1} << 30) - 1)) != 0);
  if (gib <= most_of_fine_steps) return gib;
  return (gib + coarse_step - 1) / coarse_step * coarse_step;
}

}  // namespace

bool DeviceInfo::has_library(std::string_view library) const {
  return !library.empty() && (library == matrix_library || library == attention_library);
}

const std::string* DeviceInfo::library_like(std::string_view library) const {
  const auto name_of = [](std::string_view text) { return text.substr(0, text.rfind(' ')); };
  for (const std::string* const open : {&matrix_library, &attention_library}) {
    if (!open->empty() && name_of(*open) == name_of(library)) return open;
  }
  return nullptr;
}

DeviceInfo DeviceInfo::without_libraries() const {
  DeviceInfo alone = *this;
  alone.matrix_library.clear();
  alone.attention_library.clear();
  return alone;
}

std::string_view product_name(std::string_view name) {
  while (name.ends_with(')')) {
    const auto open = name.rfind(" (");
    if (open == std::string_view::npos || open == 0) break;
    name = name.substr(0, open);
  }
  return name;
}

std::string DeviceInfo::address() const {
  const std::string& address = card.pci_address.empty() ? card.uuid : card.pci_address;
  // Devices on the CPU are not cards, and several of them may have the same UUID.
  if (is_cpu() || address.empty()) return id();
  return std::string(to_string(backend)) + ":" + address;
}

std::string DeviceInfo::fingerprint() const {
  Hash hash;
  hash.add(to_string(backend)).add(vendor).add(architecture).add(std::uint64_t{compute_units});
  std::string product(product_name(name));
  // A database stores a text that is not UTF-8 in another form.
  std::erase_if(product, [](unsigned char c) { return c >= 0x80; });
  hash.add(product);
  if (is_cpu()) {
    // Its UUID is a hash of the processor's model, and its name is that of the driver.
    hash.add(card.uuid);
  } else if (kind != DeviceKind::integrated_gpu) {
    hash.add(nominal_memory_gib(memory_bytes));
  }
  return hash.hex();
}

bool same_card(const Card& a, const Card& b) {
  if (!a.pci_address.empty() && !b.pci_address.empty()) return a.pci_address == b.pci_address;
  return !a.uuid.empty() && a.uuid == b.uuid;
}

bool same_card(const DeviceInfo& a, const DeviceInfo& b) {
  if (a.id() == b.id()) return true;
  return !a.is_cpu() && !b.is_cpu() && same_card(a.card, b.card);
}

}  // namespace greta::device
