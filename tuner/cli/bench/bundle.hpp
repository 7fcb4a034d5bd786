#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/device/device_info.hpp"
#include "tuner/bench/health.hpp"
#include "tuner/bundle/bundle_files.hpp"

namespace greta::tuner::cli {

/// The health of a device.
struct DeviceHealth {
  DeviceInfo device;
  std::vector<Health> checks;
};

/// What greta-bench doctor found, packed to be understood elsewhere: one archive, whose files hold
/// no names of people or machines. docs/first-amd-run.md says what they are.
class Bundle {
 public:
  /// Throws CommandError where the file can't be made. `yes`: it is written without asking.
  /// `deadline`: of each process that is started, a minute at least.
  Bundle(std::filesystem::path file, bool yes, std::chrono::seconds deadline);

  /// Lists the devices of each API in a process of its own. Which of them died, and how; empty
  /// where none did.
  std::string probe();
  /// Adds what checks found, and what failed with its kernels. `outcome`: what doctor ended with.
  void add(const std::vector<DeviceHealth>& devices, const std::string& outcome);
  /// Says which files go into the bundle, asks on a terminal, and writes it. Throws CommandError
  /// where that fails, or the user does not want it.
  void write();

 private:
  void add_health(const DeviceInfo& device, const Health& health);
  void add_failed(const DeviceInfo& device, const Health& health);

  std::filesystem::path file_;
  bool yes_;
  std::chrono::seconds deadline_;
  BundleFiles files_;
  int failed_ = 0;  ///< configurations whose kernels were added
};

}  // namespace greta::tuner::cli
