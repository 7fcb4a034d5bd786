#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/model/operation.hpp"
#include "tuner/cli/options/choice_options.hpp"

namespace greta::tuner::cli {

/// The device of `greta-tune verify`. Variants that need cooperative matrices, which no CPU has,
/// are checked with emulated ones (OpenOptions::emulated_matrices).
struct VerifiedDevice {
  DeviceInfo info;
  std::vector<std::string> emulated;    ///< variants that `info` offers no matrices for
  std::optional<DeviceInfo> emulating;  ///< the device with emulated matrices, if there are any

  /// Returns whether a variant runs with emulated matrices.
  bool emulates(std::string_view variant) const;
  /// Returns the device for which the configurations of a variant are made.
  const DeviceInfo& running(std::string_view variant) const {
    return emulates(variant) ? *emulating : info;
  }
};

/// Opens the device with the vendor's library if that is verified. Throws CommandError.
VerifiedDevice device_to_verify(const Operation& operation, const DeviceInfo& probed, bool vendor);

/// Returns `count` random candidates as candidates_of_random_problems() does. Where no variant is
/// chosen, some of each that is emulated follow, so that the others are the same on every device.
std::vector<Candidate> random_problems(const Operation& operation, const ChoiceOptions& options,
                                       const VerifiedDevice& device, const std::string& count,
                                       std::uint64_t seed);

}  // namespace greta::tuner::cli
