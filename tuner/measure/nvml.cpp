#include "runtime/device/system/dynamic_library.hpp"
#include "tuner/measure/card_sensor.hpp"

namespace greta::tuner {
namespace {

// The part of NVML that is used, as nvml.h declares it.
using NvmlDevice = void*;
struct Nvml {
  std::optional<DynamicLibrary> library;
  int (*init)() = nullptr;
  int (*by_pci)(const char*, NvmlDevice*) = nullptr;
  int (*clock)(NvmlDevice, int, unsigned*) = nullptr;
  // Older drivers and some cards lack the others.
  int (*power)(NvmlDevice, unsigned*) = nullptr;
  int (*energy)(NvmlDevice, unsigned long long*) = nullptr;
  int (*temperature)(NvmlDevice, int, unsigned*) = nullptr;
  int (*reasons)(NvmlDevice, unsigned long long*) = nullptr;
  bool ready = false;

  Nvml() {
    auto opened = DynamicLibrary::open({"libnvidia-ml.so.1"});
    if (!opened) return;
    library = *std::move(opened);
    library->keep_open();
    library->load_optional(init, "nvmlInit_v2");
    library->load_optional(by_pci, "nvmlDeviceGetHandleByPciBusId_v2");
    library->load_optional(clock, "nvmlDeviceGetClockInfo");
    library->load_optional(power, "nvmlDeviceGetPowerUsage");
    library->load_optional(energy, "nvmlDeviceGetTotalEnergyConsumption");
    library->load_optional(temperature, "nvmlDeviceGetTemperature");
    library->load_optional(reasons, "nvmlDeviceGetCurrentClocksEventReasons");
    if (reasons == nullptr)
      library->load_optional(reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
    ready = init != nullptr && by_pci != nullptr && clock != nullptr && init() == 0;
  }
};

const Nvml& nvml() {
  static const Nvml library;
  return library;
}

class NvmlSensor final : public CardSensor {
 public:
  explicit NvmlSensor(NvmlDevice device) : device_(device) {}

  std::string name() const override { return "NVML"; }

  CardReading read() override {
    constexpr int clock_sm = 1, clock_memory = 2, of_the_gpu = 0;
    const Nvml& lib = nvml();
    CardReading reading;
    unsigned value = 0;
    if (lib.clock(device_, clock_sm, &value) == 0) reading.sm_mhz = value;
    if (lib.clock(device_, clock_memory, &value) == 0) reading.memory_mhz = value;
    if (lib.power != nullptr && lib.power(device_, &value) == 0)
      reading.state.watts = value * 1e-3;  // mW
    if (lib.temperature != nullptr && lib.temperature(device_, of_the_gpu, &value) == 0)
      reading.state.celsius = value;
    unsigned long long wide = 0;
    if (lib.reasons != nullptr && lib.reasons(device_, &wide) == 0)
      reading.state.throttled = throttle_reasons(wide);
    return reading;
  }

  std::optional<double> joules() override {
    unsigned long long millijoules = 0;
    const auto read = nvml().energy;
    if (read == nullptr || read(device_, &millijoules) != 0) return std::nullopt;
    return static_cast<double>(millijoules) * 1e-3;
  }

 private:
  NvmlDevice device_;
};

}  // namespace

std::string throttle_reasons(unsigned long long bits) {
  struct Reason {
    unsigned long long mask;
    const char* name;
  };
  constexpr Reason reasons[] = {{0x4, "power cap"},
                                {0x20 | 0x40, "thermal"},
                                {0x80, "power brake"},
                                {0x8, "hardware slowdown"}};
  std::string text;
  for (const auto& [mask, name] : reasons) {
    if ((bits & mask) != 0) text += (text.empty() ? "" : ", ") + std::string(name);
  }
  return text;
}

std::unique_ptr<CardSensor> open_nvml(const std::string& pci_address) {
  NvmlDevice device = nullptr;
  if (!nvml().ready || nvml().by_pci(pci_address.c_str(), &device) != 0) return nullptr;
  return std::make_unique<NvmlSensor>(device);
}

}  // namespace greta::tuner
