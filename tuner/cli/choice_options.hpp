#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/candidates.hpp"
#include "kernels/problems.hpp"

namespace greta::tuner::cli {

/// What a command does something with: a problem, and configurations of it.
struct ChoiceOptions {
  ProblemRequest problem;
  std::string config;   ///< one, as reports print it
  std::string variant;  ///< of this variant only
  std::string sample;   ///< so many random ones

  /// Whether any of the options that belong to a problem is there.
  bool names_problem() const;
};

/// Adds an operation's dimensions, types and attributes, --config, --variant and --sample to a
/// subcommand. `options` must live as long as it does.
void add_choice_options(CLI::App& command, const Operation& operation, ChoiceOptions& options);

/// The problem with the configuration that is named, with random ones, or else with its default.
/// Throws CommandError, which names the constraint where the variant has no valid configuration.
std::vector<Candidate> candidates_of_problem(const Operation& operation,
                                             const ChoiceOptions& options, const DeviceInfo& device,
                                             std::uint64_t seed);

/// Random problems, each with a random configuration of the variant. `option` says how many, and
/// `count` is its value. Throws CommandError as candidates_of_problem(), and where a problem is
/// named as well.
std::vector<Candidate> candidates_of_random_problems(const Operation& operation,
                                                     const ChoiceOptions& options,
                                                     const DeviceInfo& device,
                                                     const std::string& option,
                                                     const std::string& count, std::uint64_t seed);

}  // namespace greta::tuner::cli
