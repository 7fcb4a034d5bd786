#pragma once

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

}  // namespace greta::tuner
