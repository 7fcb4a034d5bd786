#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "db/trial.hpp"
#include "kernels/model/space.hpp"
#include "runtime/device/result.hpp"
#include "tuner/replay/recorded_space.hpp"
#include "tuner/search/strategy.hpp"

namespace greta::tuner {

/// A search space with one recorded measurement per configuration. It runs strategies without a
/// device. Configurations that were not recorded are not valid in it.
class Recording {
 public:
  /// Reads a file, plain or compressed by gzip: the cache of Kernel Tuner
  /// (https://github.com/KernelTuner/kernel_tuner), results in the T4 format, or a recording of
  /// GRETA. A file without its end, which tools leave behind, has the configurations up to there.
  static Result<Recording> load(const std::filesystem::path& file, std::uint64_t shuffle_seed = 0);

  /// Returns the recording with its parameters and their values in a random order, by which its
  /// configurations are numbered. So no strategy can profit from the order in the file.
  Recording shuffled(std::uint64_t seed) const;

  /// Returns the name of the recorded device as in the file.
  const std::string& device_name() const { return recorded_->device_name; }
  /// Returns whether the end of the file was missing.
  bool completed() const { return recorded_->completed; }
  /// Returns the space in which the recorded configurations are valid.
  const Space& space() const { return *space_; }
  /// Returns the recorded trial of a configuration: its time, or a failure.
  Trial trial(const Config& config) const { return trial(space_->choice(config).value()); }
  Trial trial(const Choice& choice) const;
  /// Returns all trials in the order of the file, for a recording that is not shuffled.
  std::vector<Trial> trials() const;
  /// What GRETA recorded.
  struct Subject {
    const Operation* operation = nullptr;
    Problem problem;
    DeviceInfo device;
  };
  /// Returns it; nothing for recordings of other tools, and for operations that are not built in.
  std::optional<Subject> subject() const;
  /// Returns the subject's static prior, which is valid as long as this recording; empty if there
  /// is none.
  SearchProblem::Prior prior() const;
  /// Returns the shortest recorded time; infinity if everything failed.
  double optimum_us() const { return optimum_us_; }

 private:
  /// A seed of 0 keeps the order.
  Recording(std::shared_ptr<const RecordedSpace> recorded, std::uint64_t shuffle_seed);

  std::shared_ptr<const RecordedSpace> recorded_;
  std::shared_ptr<const Space> space_;
  std::vector<std::uint32_t> rows_;  ///< by index in the space
  double optimum_us_ = 0;
};

}  // namespace greta::tuner
