#include "tuner/measure/clocks.hpp"

#include <fmt/format.h>

#include <sstream>

#include "runtime/device/system/input_file.hpp"
#include "tuner/measure/card_sensor.hpp"

namespace greta::tuner {
namespace {

std::string reported_clocks(const CardReading& reading) {
  if (!reading.sm_mhz || !reading.memory_mhz) return {};
  return fmt::format("SM {} MHz, memory {} MHz", *reading.sm_mhz, *reading.memory_mhz);
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

CardConditions read_conditions(const std::string& pci_address) {
  if (pci_address.empty()) return {};
  CardSensor* const sensor = card_sensor(pci_address);
  const CardReading reading = sensor != nullptr ? sensor->read() : CardReading();
  CardConditions conditions{amd_clocks(pci_address), reading.state};
  if (conditions.clocks.empty()) conditions.clocks = reported_clocks(reading);
  return conditions;
}

const CardConditions& RecentConditions::latest(const std::string& pci_address) {
  const auto now = std::chrono::steady_clock::now();
  if (pci_address != pci_address_ || now - read_ > oldest_) {
    conditions_ = read_conditions(pci_address);
    pci_address_ = pci_address;
    read_ = std::chrono::steady_clock::now();
  }
  return conditions_;
}

}  // namespace greta::tuner
