#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/model/operation.hpp"
#include "runtime/device/device.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// A problem that is too large for a reference, and samples of indices of some of its dimensions.
/// Restricted to these, it is a small problem of the same operation with packed rows, whose
/// reference gives the large problem's results there. All other inputs of the large problem are 0.
/// Tensors with unpacked rows are sampled completely, with NaN between rows.
struct SampledProblem {
  Problem whole;
  std::vector<std::string> dimensions;  ///< all have the same extent and the same samples
  std::vector<std::int64_t> samples;    ///< ascending
  /// Maps the samples' tensors to those that the whole problem reads, e.g. other positions; null:
  /// unchanged.
  std::function<void(std::vector<HostTensor>&)> translate = nullptr;

  /// Returns the small problem: `dimensions` have as many indices as there are samples.
  Problem part() const;
};

/// Returns where the rows or columns of a sample's tensor are in the whole problem's tensor. Equal
/// extents are not sampled; otherwise the sampled dimension is the outer one of an extent.
std::vector<std::int64_t> places(std::int64_t whole, std::int64_t part,
                                 const std::vector<std::int64_t>& samples);

/// Runs the whole problem with this configuration. Returns the samples of its results: tensors
/// whose role is not input. Fails if the plan fails or memory outside an operand is written.
Result<std::vector<HostTensor>> run_whole(const Operation& kernel, const SampledProblem& problem,
                                          Device& device, const Config& config,
                                          std::uint64_t seed = 1);

/// Runs the whole problem and checks its samples with their reference.
Result<Verdict> run_sampled(const Operation& kernel, const SampledProblem& problem, Device& device,
                            const Config& config, std::uint64_t seed = 1);

/// Returns the variant's first default that is valid for the problem. If there is none, or if
/// results are so narrow that most of a typical tile would be idle, returns the random
/// configuration with the smallest tiles or the fewest threads. Throws Error if the variant has no
/// configuration.
Config config_of(const Operation& kernel, const Problem& problem, const DeviceInfo& device,
                 const std::string& variant);

/// Returns GPUs of this machine, and the CPU as gfx942. Vulkan on the CPU has too little memory.
std::vector<std::string> spacious_devices();

}  // namespace greta::test
