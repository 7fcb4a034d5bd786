#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// A problem, and a valid configuration for it.
struct Candidate {
  Problem problem;
  Config config;
};

/// `count` different configurations of a problem; all where there are fewer. Of one variant where
/// `variant` is not empty.
std::vector<Candidate> sample_candidates(const Operation& operation, const Problem& problem,
                                         const DeviceInfo& device, std::string_view variant,
                                         std::size_t count, std::uint64_t seed);

/// Random configurations of random small problems, for testing. Variants, their instructions
/// (Variant::kernels_by) and types are dealt like cards, each combination that the operation has on
/// this device as often as any other, and so are the values of each attribute. Within that, what
/// was not met yet comes first: values of parameters and attributes, and extents that leave parts
/// incomplete (kernels/coverage.hpp); then pairs of parameters' values. Equal seeds give equal
/// choices.
std::vector<Candidate> random_candidates(const Operation& operation, const DeviceInfo& device,
                                         std::string_view variant, std::size_t count,
                                         std::uint64_t seed);

}  // namespace greta::kernels
