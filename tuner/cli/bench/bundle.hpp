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

/// Packs the findings of greta-bench doctor for use on another machine: one archive, whose files
/// contain no names of persons or machines. docs/first-amd-run.md describes them.
class Bundle {
 public:
  /// Throws CommandError if the file can't be created. `yes` writes it without confirmation.
  /// `deadline` applies to each process that is started, with a minimum of one minute.
  Bundle(std::filesystem::path file, bool yes, std::chrono::seconds deadline);

  /// Lists the devices of each API in a separate process. Returns which of them crashed and how;
  /// empty if none did.
  std::string probe();
  /// Adds the results of checks, and failed configurations with their kernels. `outcome` is the
  /// outcome of doctor.
  void add(const std::vector<DeviceHealth>& devices, const std::string& outcome);
  /// Lists the bundle's files, asks for confirmation on a terminal, and writes it. Throws
  /// CommandError if writing fails or the user declines.
  void write();

 private:
  void add_health(const DeviceInfo& device, const Health& health);
  void add_failed(const DeviceInfo& device, const Health& health);

  std::filesystem::path file_;
  bool yes_;
  std::chrono::seconds deadline_;
  BundleFiles files_;
  int failed_ = 0;  ///< number of configurations whose kernels were added
};

}  // namespace greta::tuner::cli
