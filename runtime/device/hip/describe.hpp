#pragma once

#include <functional>
#include <string>

#include "runtime/device/device_info.hpp"
#include "runtime/device/hip/functions.hpp"

namespace greta::device::hip {

/// The numbers of the attributes that GRETA reads. Each platform has its own enumeration; 0 means
/// that a platform lacks the attribute.
struct AttributeNumbers {
  int max_threads_per_block = 0;
  std::array<int, 3> max_block{};
  std::array<int, 3> max_grid{};
  int shared_per_block = 0;
  int shared_per_block_optin = 0;
  int warp_size = 0;
  int multiprocessors = 0;
  int integrated = 0;
  // Limits of one multiprocessor
  int registers = 0;
  int threads = 0;
  int shared = 0;
};

/// Reads an attribute of a device. Throws Refusal.
using ReadAttribute = std::function<int(int number)>;

/// Fills in the properties that attributes and tables provide for a GPU whose name and architecture
/// are known. Throws Refusal.
void describe_gpu(DeviceInfo& info, const AttributeNumbers& numbers, const ReadAttribute& read);

/// Returns a driver's PCI address as "0000:c1:00.0": in lower case, with a domain of four digits.
std::string pci_address(std::string_view reported);

/// Returns the version of a kernel module, e.g. "nvidia", or an empty string if it is not reported.
std::string kernel_module_version(const std::string& name);

}  // namespace greta::device::hip
