#include <cstdint>
#include <cstdio>

#include "runtime/device/system/dynamic_library.hpp"
#include "tuner/measure/card_sensor.hpp"

namespace greta::tuner {
namespace {

// Of both libraries, only functions are used whose arguments are plain numbers: their structs
// differ between versions.

/// A PCI address as AMD SMI takes it: function, device, bus and domain in 3, 5, 8 and 48 bits.
std::optional<std::uint64_t> bdf_of(const std::string& address) {
  unsigned domain = 0, bus = 0, device = 0, function = 0;
  if (std::sscanf(address.c_str(), "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4)
    return std::nullopt;
  return function | device << 3 | bus << 8 | std::uint64_t{domain} << 16;
}

/// The same as ROCm SMI reports it: the domain is in the upper 32 bits.
std::uint64_t rocm_id_of(std::uint64_t bdf) {
  return (bdf & 0xffff) | (bdf >> 16) << 32;
}

constexpr int temperature_hotspot = 1, temperature_now = 0;

struct AmdSmi {
  std::optional<DynamicLibrary> library;
  int (*init)(std::uint64_t) = nullptr;
  int (*by_bdf)(std::uint64_t, void**) = nullptr;
  int (*energy)(void*, std::uint64_t*, float*, std::uint64_t*) = nullptr;
  int (*temperature)(void*, int, int, std::int64_t*) = nullptr;
  bool ready = false;

  AmdSmi() {
    constexpr std::uint64_t gpus = 1 << 1;
    auto opened = DynamicLibrary::open(
        {"libamd_smi.so", "libamd_smi.so.26", "libamd_smi.so.25", "/opt/rocm/lib/libamd_smi.so"});
    if (!opened) return;
    library = *std::move(opened);
    library->keep_open();
    library->load_optional(init, "amdsmi_init");
    library->load_optional(by_bdf, "amdsmi_get_processor_handle_from_bdf");
    library->load_optional(energy, "amdsmi_get_energy_count");
    library->load_optional(temperature, "amdsmi_get_temp_metric");
    ready = init != nullptr && by_bdf != nullptr && init(gpus) == 0;
  }
};

/// Returns what a library's energy counter has counted; `read` may be null.
template <typename Handle>
std::optional<double> joules_of(int (*read)(Handle, std::uint64_t*, float*, std::uint64_t*),
                                Handle card) {
  std::uint64_t count = 0, time = 0;
  float microjoules = 0;
  if (read == nullptr || read(card, &count, &microjoules, &time) != 0) return std::nullopt;
  return static_cast<double>(count) * microjoules * 1e-6;
}

const AmdSmi& amd_smi() {
  static const AmdSmi library;
  return library;
}

class AmdSmiSensor final : public CardSensor {
 public:
  explicit AmdSmiSensor(void* device) : device_(device) {}

  std::string name() const override { return "AMD SMI"; }

  CardReading read() override {
    const AmdSmi& lib = amd_smi();
    CardReading reading;
    std::int64_t degrees = 0;
    if (lib.temperature != nullptr &&
        lib.temperature(device_, temperature_hotspot, temperature_now, &degrees) == 0) {
      reading.state.celsius = static_cast<double>(degrees);
    }
    return reading;
  }

  std::optional<double> joules() override { return joules_of(amd_smi().energy, device_); }

 private:
  void* device_;
};

struct RocmSmi {
  std::optional<DynamicLibrary> library;
  int (*init)(std::uint64_t) = nullptr;
  int (*count)(std::uint32_t*) = nullptr;
  int (*pci_id)(std::uint32_t, std::uint64_t*) = nullptr;
  int (*energy)(std::uint32_t, std::uint64_t*, float*, std::uint64_t*) = nullptr;
  int (*power)(std::uint32_t, std::uint32_t, std::uint64_t*) = nullptr;
  int (*temperature)(std::uint32_t, std::uint32_t, int, std::int64_t*) = nullptr;
  bool ready = false;

  RocmSmi() {
    auto opened = DynamicLibrary::open({"librocm_smi64.so", "librocm_smi64.so.7",
                                        "librocm_smi64.so.6", "/opt/rocm/lib/librocm_smi64.so"});
    if (!opened) return;
    library = *std::move(opened);
    library->keep_open();
    library->load_optional(init, "rsmi_init");
    library->load_optional(count, "rsmi_num_monitor_devices");
    library->load_optional(pci_id, "rsmi_dev_pci_id_get");
    library->load_optional(energy, "rsmi_dev_energy_count_get");
    library->load_optional(power, "rsmi_dev_power_ave_get");
    library->load_optional(temperature, "rsmi_dev_temp_metric_get");
    ready = init != nullptr && count != nullptr && pci_id != nullptr && init(0) == 0;
  }
};

const RocmSmi& rocm_smi() {
  static const RocmSmi library;
  return library;
}

class RocmSmiSensor final : public CardSensor {
 public:
  explicit RocmSmiSensor(std::uint32_t device) : device_(device) {}

  std::string name() const override { return "ROCm SMI"; }

  CardReading read() override {
    const RocmSmi& lib = rocm_smi();
    CardReading reading;
    std::uint64_t value = 0;
    if (lib.power != nullptr && lib.power(device_, 0, &value) == 0)
      reading.state.watts = static_cast<double>(value) * 1e-6;
    std::int64_t millidegrees = 0;
    if (lib.temperature != nullptr &&
        lib.temperature(device_, temperature_hotspot, temperature_now, &millidegrees) == 0) {
      reading.state.celsius = static_cast<double>(millidegrees) * 1e-3;
    }
    return reading;
  }

  std::optional<double> joules() override { return joules_of(rocm_smi().energy, device_); }

 private:
  std::uint32_t device_;
};

}  // namespace

std::unique_ptr<CardSensor> open_amd_smi(const std::string& pci_address) {
  const auto bdf = bdf_of(pci_address);
  void* device = nullptr;
  if (!bdf || !amd_smi().ready || amd_smi().by_bdf(*bdf, &device) != 0) return nullptr;
  return std::make_unique<AmdSmiSensor>(device);
}

std::unique_ptr<CardSensor> open_rocm_smi(const std::string& pci_address) {
  const auto bdf = bdf_of(pci_address);
  std::uint32_t devices = 0;
  if (!bdf || !rocm_smi().ready || rocm_smi().count(&devices) != 0) return nullptr;
  for (std::uint32_t device = 0; device < devices; ++device) {
    std::uint64_t id = 0;
    // Bits 28 to 31 are the number of a partition.
    if (rocm_smi().pci_id(device, &id) == 0 && (id & ~0xf0000000ULL) == rocm_id_of(*bdf))
      return std::make_unique<RocmSmiSensor>(device);
  }
  return nullptr;
}

}  // namespace greta::tuner
