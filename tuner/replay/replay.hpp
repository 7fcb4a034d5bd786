#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <unordered_map>

#include "db/trial.hpp"
#include "kernels/model/space.hpp"
#include "runtime/device/result.hpp"

namespace greta::tuner {

/// A search space with one recorded measurement per configuration. It runs strategies without a
/// device.
class Recording {
 public:
  /// Reads a file in the cache format of Kernel Tuner
  /// (https://github.com/KernelTuner/kernel_tuner). A `shuffle_seed` other than 0 lists each
  /// parameter's values in random order, so that a strategy can't profit from the order in the
  /// file.
  static Result<Recording> load(const std::filesystem::path& file, std::uint64_t shuffle_seed = 0);

  /// Returns the name of the recorded device as in the file.
  const std::string& device_name() const { return device_name_; }
  /// Returns the space: one variant, named like the kernel, in which the recorded configurations
  /// are valid.
  const Space& space() const { return *space_; }
  /// Returns the recorded trial of a configuration: its time, or a failure.
  Trial trial(const Config& config) const;
  /// Returns the shortest recorded time.
  double optimum_us() const { return optimum_us_; }

 private:
  /// Microseconds; infinity for a failed configuration.
  using Times = std::unordered_map<Config, double, ConfigHash>;

  std::string device_name_;
  std::unique_ptr<Space> space_;
  std::shared_ptr<Times> times_ = std::make_shared<Times>();
  double optimum_us_ = 0;
};

}  // namespace greta::tuner
