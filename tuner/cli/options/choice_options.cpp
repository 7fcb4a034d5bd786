#include "tuner/cli/options/choice_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kernels/model/problem_rules.hpp"
#include "runtime/device/text/spelling.hpp"
#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/options/problem_options.hpp"
#include "tuner/cli/program/tool.hpp"
#include "tuner/search/ranking.hpp"

namespace greta::tuner::cli {
namespace {

constexpr std::uint64_t most_choices = 1'000'000;

void check_variant(const Operation& operation, const std::string& variant) {
  const std::vector<std::string> names = operation.variant_names();
  if (variant.empty() || std::find(names.begin(), names.end(), variant) != names.end()) return;
  throw CommandError(exit_usage,
                     fmt::format("--variant {}: {}", variant, must_be_one_of(variant, names)));
}

/// Returns the constraints because of which a variant has no valid configuration, as "name:
/// reason".
std::string obstacle(const Operation& operation, const std::string& variant, const Problem& problem,
                     const DeviceInfo& device) {
  const auto chosen = std::find_if(operation.variants.begin(), operation.variants.end(),
                                   [&](const Variant& one) { return one.name == variant; });
  const std::string why = why_empty({chosen->space(operation.shape(problem), device)});
  return why.empty() ? "no values to choose from" : why.substr(variant.size() + 2);
}

[[noreturn]] void refuse_variant(const Operation& operation, const std::string& variant,
                                 const std::vector<Problem>& problems, const DeviceInfo& device) {
  std::vector<std::string> reasons;
  for (const Problem& problem : problems) {
    const std::string reason = obstacle(operation, variant, problem, device);
    if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end()) {
      reasons.push_back(reason);
    }
  }
  throw CommandError(exit_usage,
                     fmt::format("--variant {}: has no valid configuration of {} here: {}", variant,
                                 problems.size() == 1 ? problems.front().key() : operation.name,
                                 fmt::join(reasons, "; ")));
}

/// Returns the configurations with the lowest predicted times, the best first.
std::vector<Candidate> best_predicted(const Operation& operation, const ChoiceOptions& options,
                                      const Problem& problem, const DeviceInfo& device,
                                      std::uint64_t seed) {
  constexpr std::uint64_t most_ranked = 1000;
  const std::size_t count = read_count("--rank", options.rank, most_ranked);
  auto alternatives = Instance(operation, problem, device).alternatives();
  if (!options.variant.empty()) {
    std::erase_if(alternatives,
                  [&](const Alternative& one) { return one.variant != options.variant; });
  }
  const Space space(std::move(alternatives));
  const auto prior = static_prior(operation, problem, device, space);
  std::mt19937_64 random(seed);
  std::vector<Candidate> candidates;
  if (prior) {
    for (const auto& [cost, choice] : rank_by_prior(space, prior, count, random)) {
      candidates.push_back({problem, space.config(choice)});
    }
  }
  if (!candidates.empty()) return candidates;
  if (space.count() == 0 && !options.variant.empty())
    refuse_variant(operation, options.variant, {problem}, device);
  throw CommandError(exit_usage, fmt::format("--rank: {} does not describe what its kernels do, so "
                                             "that nothing is predicted",
                                             operation.name));
}

/// Returns the configurations of the vendor's library, which are not in the operation's space.
Space vendor_space(const Operation& operation, const Problem& problem, const DeviceInfo& device) {
  return Space({operation.variant(vendor_variant).space(operation.shape(problem), device)});
}

}  // namespace

std::string ChoiceOptions::variant_named() const {
  return config.empty() ? variant : config.substr(0, config.find(' '));
}

bool ChoiceOptions::names_vendor() const {
  return variant_named() == vendor_variant;
}

bool ChoiceOptions::names_problem() const {
  return !problem.values.empty() || !problem.dtype.empty() || !problem.out_dtype.empty() ||
         !config.empty() || !sample.empty() || !rank.empty();
}

void add_choice_options(CLI::App& command, const Operation& operation, ChoiceOptions& options) {
  add_problem_options(command, operation, options.problem);
  const auto add = [&](const char* name, std::string& value, const char* help) {
    command.add_option(name, value, help)->group("Configurations");
  };
  add("--config", options.config,
      "One configuration, as reports print it; without these options: the default");
  add("--variant", options.variant, "Only configurations of this variant");
  add("--sample", options.sample, "Number of random configurations");
}

std::vector<Candidate> candidates_of_problem(const Operation& operation,
                                             const ChoiceOptions& options, const DeviceInfo& device,
                                             std::uint64_t seed) {
  if (!options.rank.empty() && !options.sample.empty()) {
    throw CommandError(exit_usage, "--rank: not with --sample");
  }
  if (!options.config.empty() &&
      (!options.sample.empty() || !options.rank.empty() || !options.variant.empty())) {
    throw CommandError(exit_usage,
                       "--config: names one configuration, without --variant, --sample and --rank");
  }
  const auto problem = make_problem(operation, options.problem);
  if (!problem) throw bad_option(problem.failure());
  if (!options.config.empty()) {
    auto config =
        (options.names_vendor() && has_vendor(operation) ? vendor_space(operation, *problem, device)
                                                         : operation.space(*problem, device))
            .parse(options.config);
    if (!config) throw CommandError(exit_usage, "--config: " + config.failure().message);
    return {{*problem, *std::move(config)}};
  }
  check_variant(operation, options.variant);
  if (!options.rank.empty()) return best_predicted(operation, options, *problem, device, seed);
  const Config standard = operation.default_config(*problem, device);
  const bool fits = options.variant.empty() || standard.variant == options.variant;
  if (options.sample.empty() && fits) return {{*problem, standard}};
  const std::size_t count =
      options.sample.empty() ? 1 : read_count("--sample", options.sample, most_choices);
  auto drawn = sample_candidates(operation, *problem, device, options.variant, count, seed);
  if (drawn.empty() && !options.variant.empty()) {
    refuse_variant(operation, options.variant, {*problem}, device);
  }
  return drawn;
}

std::vector<Candidate> candidates_of_random_problems(const Operation& operation,
                                                     const ChoiceOptions& options,
                                                     const DeviceInfo& device,
                                                     const std::string& option,
                                                     const std::string& count, std::uint64_t seed) {
  if (options.names_problem()) {
    throw CommandError(
        exit_usage, option + ": draws problems, without options for them, --config and --sample");
  }
  check_variant(operation, options.variant);
  auto drawn = random_candidates(operation, device, options.variant,
                                 read_count(option, count, most_choices), seed);
  if (drawn.empty() && !options.variant.empty()) {
    std::vector<Problem> problems;
    for (const DTypes& types : operation.dtypes) {
      problems.push_back(typical_problem(operation, types));
    }
    refuse_variant(operation, options.variant, problems, device);
  }
  return drawn;
}

}  // namespace greta::tuner::cli
