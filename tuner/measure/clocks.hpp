#pragma once

#include <string>

#include "db/measurement.hpp"
#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// Returns the clocks of the GPU at this PCI address ("0000:01:00.0") as text, e.g. "SM 1980 MHz,
/// memory 3201 MHz"; empty if they can't be read. Sources: NVML, if its library is installed, and
/// the amdgpu driver's pp_dpm_sclk and pp_dpm_mclk in sysfs.
std::string read_clocks(const std::string& pci_address);

/// Returns what the driver reports of the GPU's power, temperature and reasons of throttling.
CardState read_card_state(const std::string& pci_address);

}  // namespace greta::tuner
