// Replaces the management libraries of NVIDIA and AMD (NVML, AMD SMI, ROCm SMI), of which it has
// the functions that GRETA uses. One card, whose power is 300 W and whose energy counter is updated
// every 20 ms. GRETA_FAKE_THROTTLE holds NVML's bits of the reasons for which its clocks are
// limited.

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

constexpr double watts = 300;

double joules() {
  using namespace std::chrono;
  const auto now = duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
  return watts * static_cast<double>(now / 20 * 20) * 1e-3;
}

int a_card = 0;

}  // namespace

extern "C" {

// NVML
int nvmlInit_v2() {
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* address, void** device) {
  if (std::string_view(address) != "0000:01:00.0") return 6;
  *device = &a_card;
  return 0;
}
int nvmlDeviceGetClockInfo(void*, int kind, unsigned* mhz) {
  *mhz = kind == 1 ? 1980 : 3201;
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = static_cast<unsigned>(1e3 * watts);
  return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* millijoules) {
  *millijoules = static_cast<unsigned long long>(1e3 * joules());
  return 0;
}
int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) {
  *celsius = 61;
  return 0;
}
int nvmlDeviceGetCurrentClocksEventReasons(void*, unsigned long long* bits) {
  const char* const text = std::getenv("GRETA_FAKE_THROTTLE");
  *bits = text == nullptr ? 0 : std::strtoull(text, nullptr, 0);
  return 0;
}

// AMD SMI
int amdsmi_init(std::uint64_t) {
  return 0;
}
int amdsmi_get_processor_handle_from_bdf(std::uint64_t bdf, void** device) {
  if (bdf != (std::uint64_t{0x0a} << 16 | 0x03 << 8)) return 2;  // 000a:03:00.0
  *device = &a_card;
  return 0;
}
int amdsmi_get_energy_count(void*, std::uint64_t* count, float* microjoules, std::uint64_t* time) {
  *microjoules = 15.3F;
  *count = static_cast<std::uint64_t>(joules() * 1e6 / 15.3F);
  *time = 0;
  return 0;
}
int amdsmi_get_temp_metric(void*, int, int, std::int64_t* celsius) {
  *celsius = 55;
  return 0;
}

// ROCm SMI
int rsmi_init(std::uint64_t) {
  return 0;
}
int rsmi_num_monitor_devices(std::uint32_t* count) {
  *count = 2;
  return 0;
}
int rsmi_dev_pci_id_get(std::uint32_t device, std::uint64_t* id) {
  *id = device == 0 ? 0 : std::uint64_t{0x0b} << 32 | 0x03 << 8;
  return 0;
}
int rsmi_dev_energy_count_get(std::uint32_t, std::uint64_t* count, float* microjoules,
                              std::uint64_t* time) {
  return amdsmi_get_energy_count(nullptr, count, microjoules, time);
}
int rsmi_dev_power_ave_get(std::uint32_t, std::uint32_t, std::uint64_t* microwatts) {
  *microwatts = static_cast<std::uint64_t>(1e6 * watts);
  return 0;
}
int rsmi_dev_temp_metric_get(std::uint32_t, std::uint32_t, int, std::int64_t* millidegrees) {
  *millidegrees = 47'000;
  return 0;
}
}
