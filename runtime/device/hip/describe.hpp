#pragma once

#include <functional>
#include <string>

#include "runtime/device/device_info.hpp"
#include "runtime/device/hip/functions.hpp"

namespace greta::device::hip {

/// The numbers of the attributes that GRETA reads, which each platform has its own enumeration for;
/// 0 for those that it does not have.
struct AttributeNumbers {
  int max_threads_per_block = 0;
  std::array<int, 3> max_block{};
  std::array<int, 3> max_grid{};
  int shared_per_block = 0;
  int shared_per_block_optin = 0;
  int warp_size = 0;
  int multiprocessors = 0;
  int integrated = 0;
  // Of one multiprocessor
  int registers = 0;
  int threads = 0;
  int shared = 0;
};

/// Reads an attribute of a device. Throws Refusal.
using ReadAttribute = std::function<int(int number)>;

/// Fills in what attributes and tables say of a GPU whose name and architecture are known. Throws
/// Refusal.
void describe_gpu(DeviceInfo& info, const AttributeNumbers& numbers, const ReadAttribute& read);

/// "0000:c1:00.0" from what a driver writes: lower case, and a domain of four digits.
std::string pci_address(std::string_view reported);

/// The version of a kernel module, e.g. "nvidia"; empty where it does not say.
std::string kernel_module_version(const std::string& name);

}  // namespace greta::device::hip
