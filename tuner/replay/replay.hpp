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

/// A search space of which every configuration was measured once: runs strategies without a device.
class Recording {
 public:
  /// Reads a file in the cache format of Kernel Tuner
  /// (https://github.com/KernelTuner/kernel_tuner). With a `shuffle_seed` other than 0 each
  /// parameter's values are listed in a random order, so that nothing can be gained from the order
  /// of the file.
  static Result<Recording> load(const std::filesystem::path& file, std::uint64_t shuffle_seed = 0);

  /// The device that it was made on, in the file's words.
  const std::string& device_name() const { return device_name_; }
  /// One variant, named as the kernel; its valid configurations are the recorded ones.
  const Space& space() const { return *space_; }
  /// What a run of this configuration gave: its time, or a failure.
  Trial trial(const Config& config) const;
  /// The shortest recorded time.
  double optimum_us() const { return optimum_us_; }

 private:
  /// Microseconds; infinity where the configuration failed.
  using Times = std::unordered_map<Config, double, ConfigHash>;

  std::string device_name_;
  std::unique_ptr<Space> space_;
  std::shared_ptr<Times> times_ = std::make_shared<Times>();
  double optimum_us_ = 0;
};

}  // namespace greta::tuner
