#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/model/problem_rules.hpp"
#include "kernels/sampling/candidates.hpp"

namespace greta::tuner::cli {

/// The options for a problem and its configurations.
struct ChoiceOptions {
  ProblemRequest problem;
  std::string config;   ///< one, as reports print it
  std::string variant;  ///< only of this variant
  std::string sample;   ///< number of random ones
  std::string rank{};   ///< number of those with the lowest predicted times

  /// Returns whether any option of a problem is set.
  bool names_problem() const;
  /// Returns the variant that --variant or --config names; empty if there is none.
  std::string variant_named() const;
  /// Returns whether the configurations are those of the vendor's library.
  bool names_vendor() const;
};

/// Adds an operation's dimensions, types and attributes, --config, --variant and --sample to a
/// subcommand. `options` must outlive the subcommand.
void add_choice_options(CLI::App& command, const Operation& operation, ChoiceOptions& options);

/// Returns the problem with the named configuration, with random ones, or else with its default.
/// Throws CommandError, which names the constraint if the variant has no valid configuration.
std::vector<Candidate> candidates_of_problem(const Operation& operation,
                                             const ChoiceOptions& options, const DeviceInfo& device,
                                             std::uint64_t seed);

/// Returns random problems, each with a random configuration of the variant. `option` is the name
/// of the option with the number of problems, `count` its value. Throws CommandError like
/// candidates_of_problem(), and if a problem is given as well.
std::vector<Candidate> candidates_of_random_problems(const Operation& operation,
                                                     const ChoiceOptions& options,
                                                     const DeviceInfo& device,
                                                     const std::string& option,
                                                     const std::string& count, std::uint64_t seed);

}  // namespace greta::tuner::cli
