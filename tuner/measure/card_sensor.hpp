#pragma once

#include <memory>
#include <optional>
#include <string>

#include "db/measurement.hpp"
#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// What the driver of a card reports at one moment; empty where it reports nothing.
struct CardReading {
  std::optional<double> sm_mhz, memory_mhz;
  CardState state;
};

/// The sensors of a card, through the management library of its vendor.
class CardSensor {
 public:
  virtual ~CardSensor() = default;
  virtual CardReading read() = 0;
  /// Returns the energy taken since some fixed moment; nothing if the driver doesn't count it.
  /// Apart from read(), because it takes milliseconds on some drivers.
  virtual std::optional<double> joules() = 0;
  virtual std::string name() const = 0;  ///< "NVML"
};

/// Returns the sensors of the GPU at this PCI address ("0000:01:00.0"), or nullptr if no library
/// knows it. The libraries are looked for once: libnvidia-ml.so.1, libamd_smi.so, librocm_smi64.so.
/// The object lives as long as the process, and belongs to one thread at a time.
CardSensor* card_sensor(const std::string& pci_address);

// Each is defined in the source file of its library. They return nullptr if it is not there, or
// does not know the card.
std::unique_ptr<CardSensor> open_nvml(const std::string& pci_address);
std::unique_ptr<CardSensor> open_amd_smi(const std::string& pci_address);
std::unique_ptr<CardSensor> open_rocm_smi(const std::string& pci_address);

/// Returns the reasons for which an NVIDIA GPU limits its clocks, of the bits of NVML's
/// nvmlClocksEventReasons: "power cap, thermal". Idling and a user's own limits are none.
std::string throttle_reasons(unsigned long long bits);

}  // namespace greta::tuner
