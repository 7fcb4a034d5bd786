#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// A problem and a configuration that is valid for it.
struct Candidate {
  Problem problem;
  Config config;
};

/// Draws `count` different configurations of a problem, or all if there are fewer. If `variant` is
/// not empty, draws only from that variant.
std::vector<Candidate> sample_candidates(const Operation& operation, const Problem& problem,
                                         const DeviceInfo& device, std::string_view variant,
                                         std::size_t count, std::uint64_t seed);

/// Draws random configurations of random small problems, for testing. Combinations of variant,
/// value of Variant::kernels_by and types that the device supports are drawn without
/// replacement in rounds, so that each occurs equally often, and so are the values of each
/// attribute, except that in a third of the problems most attributes have their default. Within a
/// combination, choices with uncovered features are preferred: values of parameters and attributes,
/// and extents that leave parts incomplete (kernels/sampling/coverage.hpp); and such with other
/// numbers of parts or pairs of options (Novelty). For half of the choices of variants with
/// paths, a third of the problems that are compared have a value of an attribute that few choices
/// have (RareValues). In a third of the choices, many parts of one division come first. Uncovered
/// pairs of parameter values break ties. Equal seeds give equal choices. If `variant` is not empty,
/// draws only from that variant. The operation and the device must outlive it. Returns a function
/// that draws the next one, or std::nullopt if no problem has a valid configuration.
std::function<std::optional<Candidate>()> candidate_source(const Operation& operation,
                                                           const DeviceInfo& device,
                                                           std::string_view variant,
                                                           std::uint64_t seed);

/// Returns the first `count` of candidate_source(), or none if no problem has a valid
/// configuration.
std::vector<Candidate> random_candidates(const Operation& operation, const DeviceInfo& device,
                                         std::string_view variant, std::size_t count,
                                         std::uint64_t seed);

}  // namespace greta::kernels
