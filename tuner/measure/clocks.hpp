#pragma once

#include <chrono>
#include <string>

#include "db/measurement.hpp"
#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// What a GPU's driver reports at one moment.
struct CardConditions {
  /// Its clocks, e.g. "SM 1980 MHz, memory 3201 MHz"; empty if they can't be read.
  std::string clocks;
  CardState state;
};

/// Reads the sensors of the GPU at this PCI address ("0000:01:00.0") once. Sources: card_sensor(),
/// and for clocks the amdgpu driver's pp_dpm_sclk and pp_dpm_mclk in sysfs.
CardConditions read_conditions(const std::string& pci_address);

/// Reads the sensors of a GPU not more often than they change: drivers renew them several times a
/// second, and reading them takes longer than timing a short kernel.
class RecentConditions {
 public:
  using Age = std::chrono::milliseconds;
  explicit RecentConditions(Age oldest = Age(200)) : oldest_(oldest) {}

  /// Returns what read_conditions() returned at most `oldest` ago.
  const CardConditions& latest(const std::string& pci_address);

 private:
  Age oldest_;
  std::string pci_address_;  ///< empty: nothing was read
  std::chrono::steady_clock::time_point read_{};
  CardConditions conditions_;
};

}  // namespace greta::tuner
