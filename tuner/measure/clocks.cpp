#include "tuner/measure/clocks.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <sstream>

#include "runtime/device/system/input_file.hpp"

namespace greta::tuner {
namespace {

// The required subset of NVML, as declared in nvml.h.
struct Nvml {
  using DeviceHandle = void*;
  int (*init)() = nullptr;
  int (*by_pci)(const char*, DeviceHandle*) = nullptr;
  int (*clock)(DeviceHandle, int, unsigned*) = nullptr;
  bool ready = false;

  Nvml() {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) return;
    init = reinterpret_cast<decltype(init)>(dlsym(library, "nvmlInit_v2"));
    by_pci = reinterpret_cast<decltype(by_pci)>(dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2"));
    clock = reinterpret_cast<decltype(clock)>(dlsym(library, "nvmlDeviceGetClockInfo"));
    ready = init != nullptr && by_pci != nullptr && clock != nullptr && init() == 0;
  }
};

std::string nvidia_clocks(const std::string& pci_address) {
  constexpr int clock_sm = 1;
  constexpr int clock_memory = 2;
  static const Nvml nvml;
  Nvml::DeviceHandle device = nullptr;
  unsigned sm = 0;
  unsigned memory = 0;
  if (!nvml.ready || nvml.by_pci(pci_address.c_str(), &device) != 0 ||
      nvml.clock(device, clock_sm, &sm) != 0 || nvml.clock(device, clock_memory, &memory) != 0) {
    return {};
  }
  return fmt::format("SM {} MHz, memory {} MHz", sm, memory);
}

// Returns the clock of the line that the driver marks as current: "1: 2124Mhz *".
std::string current_level(const std::string& file) {
  std::istringstream in(read_system_file(file));
  for (std::string line; std::getline(in, line);) {
    const auto colon = line.find(": ");
    const auto unit = line.find("Mhz");
    if (line.find('*') != std::string::npos && colon != std::string::npos &&
        unit != std::string::npos) {
      return line.substr(colon + 2, unit - colon - 2);
    }
  }
  return {};
}

std::string amd_clocks(const std::string& pci_address) {
  const std::string folder = "/sys/bus/pci/devices/" + pci_address;
  const auto shader = current_level(folder + "/pp_dpm_sclk");
  const auto memory = current_level(folder + "/pp_dpm_mclk");
  if (shader.empty() || memory.empty()) return {};
  return fmt::format("shader {} MHz, memory {} MHz", shader, memory);
}

}  // namespace

std::string read_clocks(const std::string& pci_address) {
  if (pci_address.empty()) return {};
  auto clocks = amd_clocks(pci_address);
  return clocks.empty() ? nvidia_clocks(pci_address) : clocks;
}

}  // namespace greta::tuner
