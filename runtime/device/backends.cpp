#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "runtime/device/backend.hpp"
#include "runtime/device/hip/hip_backend.hpp"
#include "runtime/device/text/strings.hpp"
#include "runtime/device/vulkan/vulkan_backend.hpp"

namespace greta::device {

namespace {

/// Ranks real GPUs above devices that merely act as a GPU.
int rank(const ProbedDevice& device) {
  switch (device.info.kind) {
    case DeviceKind::discrete_gpu:
      return 3;
    case DeviceKind::integrated_gpu:
      return 2;
    case DeviceKind::virtual_gpu:
      return 1;
    case DeviceKind::cpu:
      return 0;
  }
  return 0;
}

/// Returns "vulkan:0 (llvmpipe …), vulkan:1 (…, not usable: …)", followed by the reasons why
/// backends are absent.
std::string describe(const std::vector<ProbedDevice>& devices,
                     const std::vector<std::string>& absent) {
  std::string text;
  for (const auto& device : devices) {
    text += fmt::format("{}{} ({}{})", text.empty() ? "" : ", ", device.info.id(), device.info.name,
                        device.usable ? "" : ", not usable: " + device.reason);
  }
  if (text.empty()) text = "none";
  for (const auto& line : absent) text += "; " + line;
  return text;
}

/// Returns a UUID without the prefix and the dashes of NVIDIA's tools: "GPU-6e8f0a3b-…".
std::string plain_uuid(std::string text) {
  if (text.starts_with("gpu-")) text.erase(0, 4);
  std::erase(text, '-');
  return text;
}

/// Returns whether `part`, in lower case, is the address of this device's card.
bool is_address(const DeviceInfo& device, std::string part) {
  const auto api = std::string(to_string(device.backend)) + ":";
  if (part.starts_with(api)) part.erase(0, api.size());
  const auto [uuid, pci_address] = device.card;
  if (part.empty() || device.is_cpu()) return false;
  return part == lowercase(pci_address) || (!uuid.empty() && plain_uuid(part) == lowercase(uuid));
}

/// Returns the device whose id is `part`, in lower case. Probes only the backend of the id, so that
/// a process that says which device it uses loads no drivers of others.
std::optional<ProbedDevice> device_of_id(const std::string& part,
                                         const std::vector<Backend*>& among) {
  for (Backend* const backend : among) {
    const auto api = std::string(to_string(backend->api())) + ":";
    if (!part.starts_with(api) ||
        part.find_first_not_of("0123456789", api.size()) != std::string::npos)
      continue;
    Probe probe = backend->probe();
    for (auto& device : probe.devices) {
      if (device.info.id() == part) return std::move(device);
    }
  }
  return std::nullopt;
}

/// Prepares counting on the backends that may have the device. An id names the only one.
void prepare_counters(const std::string& part) {
  const auto colon = part.find(':');
  const auto of_id = [&](Backend* backend) {
    return colon != std::string::npos && part.substr(0, colon) == to_string(backend->api());
  };
  const bool named = std::any_of(backends().begin(), backends().end(), of_id);
  for (Backend* const backend : backends()) {
    if (!named || of_id(backend)) backend->prepare_counters();
  }
}

/// Returns the device that `part`, in lower case and no device's id, selects, or a null pointer.
const ProbedDevice* choose(const std::vector<ProbedDevice>& devices, const std::string& part) {
  const ProbedDevice* chosen = nullptr;
  for (const auto& device : devices) {
    if (to_string(device.info.backend) == part) {  // its first usable device
      if (device.usable && chosen == nullptr) chosen = &device;
      continue;
    }
    if (is_address(device.info, part)) {  // the same card through another API comes later
      if (chosen == nullptr || (device.usable && !chosen->usable)) chosen = &device;
      continue;
    }
    const auto names = lowercase(device.info.name + "\n" + device.info.architecture);
    const bool matches = part == "auto" || (!part.empty() && names.find(part) != std::string::npos);
    if (!matches || !device.usable) continue;
    if (chosen == nullptr || rank(device) > rank(*chosen)) chosen = &device;
  }
  return chosen;
}

Result<ProbedDevice> if_usable(const ProbedDevice& device, std::string_view wanted) {
  if (device.usable) return device;
  return Failure{
      Status::unavailable, fmt::format("device {} is not usable: {}", wanted, device.reason), {}};
}

/// Finds a device. With `without_compiler`, those that lack only a compiler count as usable.
Result<ProbedDevice> select_among(std::string_view wanted, const std::vector<Backend*>& among,
                                  bool without_compiler) {
  const auto admit = [&](ProbedDevice& device) {
    device.usable = device.usable || (without_compiler && device.lacks_compiler);
  };
  const std::string part = lowercase(wanted);
  if (auto device = device_of_id(part, among)) {
    admit(*device);
    return if_usable(*device, wanted);
  }
  std::vector<ProbedDevice> devices;
  std::vector<std::string> absent;
  for (Backend* const backend : among) {
    Probe probe = backend->probe();
    if (!probe.available)
      absent.push_back(fmt::format("{}: {}", to_string(backend->api()), probe.reason));
    for (ProbedDevice& device : probe.devices) admit(device);
    std::move(probe.devices.begin(), probe.devices.end(), std::back_inserter(devices));
  }
  if (const ProbedDevice* const chosen = choose(devices, part)) return if_usable(*chosen, wanted);
  return Failure{Status::unavailable,
                 fmt::format("no usable device matches \"{}\"; there is: {}", wanted,
                             describe(devices, absent)),
                 {}};
}

}  // namespace

const std::vector<Backend*>& backends() {
  // The list is never destroyed: some drivers fail when they are shut down while the process exits.
  static const auto* const list =
      new std::vector<Backend*>{hip::create_backend().release(), vulkan::create_backend().release(),
                                hip::create_host_backend().release()};
  return *list;
}

Result<ProbedDevice> select_device(std::string_view wanted, const std::vector<Backend*>& among) {
  return select_among(wanted, among, false);
}

Result<ProbedDevice> select_device(std::string_view wanted, const OpenOptions& options) {
  auto device = select_device(wanted);
  if (device || !options.without_compiler) return device;
  auto without = select_among(wanted, backends(), true);
  return without ? std::move(without) : std::move(device);
}

Result<ProbedDevice> select_device(std::string_view wanted) {
  return select_device(wanted, backends());
}

Result<std::unique_ptr<Device>> open_device(std::string_view wanted, const OpenOptions& options) {
  if (options.counters) prepare_counters(lowercase(wanted));
  const auto device = select_device(wanted, options);
  if (!device) return device.failure();
  if (options.sanitize != Sanitize::none && !device->sanitizes) {
    return Failure{Status::unavailable,
                   device->info.id() + " can't run kernels under sanitizers; hip-host can",
                   {}};
  }
  for (Backend* const backend : backends()) {
    if (backend->api() == device->info.backend) return backend->open(device->info.index, options);
  }
  return Failure{
      Status::unavailable, fmt::format("no backend {}", to_string(device->info.backend)), {}};
}

}  // namespace greta::device
