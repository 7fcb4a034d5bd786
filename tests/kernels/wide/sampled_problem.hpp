#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/model/operation.hpp"
#include "runtime/device/device.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// A problem that is too large for a reference, and a few indices of some of its dimensions. With
/// these alone it is a small problem of the same operation, whose reference says what the large
/// one's result is there, with packed rows. Everything else that the large problem reads is 0; of
/// tensors whose rows are not packed all rows are sampled, and NaN lies between.
struct SampledProblem {
  Problem whole;
  std::vector<std::string> dimensions;  ///< each has the same extent, and is sampled alike
  std::vector<std::int64_t> samples;    ///< ascending
  /// What the whole problem reads where the samples read these tensors, e.g. other positions; null:
  /// the same.
  std::function<void(std::vector<HostTensor>&)> translate = nullptr;

  /// `dimensions` have as many indices as there are samples.
  Problem part() const;
};

/// Where the rows or columns of a sample's tensor lie in the whole problem's. Extents that are
/// equal are not sampled; else the sampled dimension is the outer one of an extent.
std::vector<std::int64_t> places(std::int64_t whole, std::int64_t part,
                                 const std::vector<std::int64_t>& samples);

/// Runs the whole problem with this configuration. Returns the samples of its results: tensors
/// whose role is not input. Fails where the plan does, and where memory outside of an operand is
/// written.
Result<std::vector<HostTensor>> run_whole(const Operation& kernel, const SampledProblem& problem,
                                          Device& device, const Config& config,
                                          std::uint64_t seed = 1);

/// The same, judged by the reference of the samples.
Result<Verdict> run_sampled(const Operation& kernel, const SampledProblem& problem, Device& device,
                            const Config& config, std::uint64_t seed = 1);

/// The variant's first default that is valid for the problem. Where it has none, and where results
/// are so narrow that most of a usual tile would lie outside, the random configuration with the
/// smallest tiles or the fewest threads. Throws Error where the variant has no configuration.
Config config_of(const Operation& kernel, const Problem& problem, const DeviceInfo& device,
                 const std::string& variant);

/// GPUs of this machine, and the CPU as gfx942. Vulkan on the CPU has too little memory.
std::vector<std::string> spacious_devices();

}  // namespace greta::test
