#include "tuner/cli/choice_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tuner/cli/numbers.hpp"
#include "tuner/cli/problem_options.hpp"
#include "tuner/cli/tool.hpp"

namespace greta::tuner::cli {
namespace {

constexpr std::uint64_t most_choices = 1'000'000;

void check_variant(const KernelTemplate& kernel_template, const std::string& variant) {
  std::vector<std::string> names;
  for (const Variant& one : kernel_template.variants) names.push_back(one.name);
  if (variant.empty() || std::find(names.begin(), names.end(), variant) != names.end()) return;
  throw CommandError(
      exit_usage, fmt::format("--variant {}: must be one of {}", variant, fmt::join(names, ", ")));
}

/// The constraint that rejects most configurations of a variant that has no valid one, as
/// "name: reason".
std::string obstacle(const KernelTemplate& kernel_template, const std::string& variant,
                     const Problem& problem, const DeviceInfo& device) {
  const auto chosen = std::find_if(kernel_template.variants.begin(), kernel_template.variants.end(),
                                   [&](const Variant& one) { return one.name == variant; });
  const Space space({chosen->space(problem, device)});
  const auto rates = space.rejection_rates(1, 1000);
  const auto most = std::max_element(
      rates.begin(), rates.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  for (const Constraint& constraint : space.alternatives().front().constraints) {
    if (most != rates.end() && constraint.name == most->first) {
      return constraint.name + ": " + constraint.reason;
    }
  }
  return "no values to choose from";
}

[[noreturn]] void refuse_variant(const KernelTemplate& kernel_template, const std::string& variant,
                                 const std::vector<Problem>& problems, const DeviceInfo& device) {
  std::vector<std::string> reasons;
  for (const Problem& problem : problems) {
    const std::string reason = obstacle(kernel_template, variant, problem, device);
    if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end()) {
      reasons.push_back(reason);
    }
  }
  throw CommandError(
      exit_usage, fmt::format("--variant {}: has no valid configuration of {} here: {}", variant,
                              problems.size() == 1 ? problems.front().key() : kernel_template.name,
                              fmt::join(reasons, "; ")));
}

}  // namespace

bool ChoiceOptions::names_problem() const {
  return !problem.values.empty() || !problem.dtype.empty() || !problem.out_dtype.empty() ||
         !config.empty() || !sample.empty();
}

void add_choice_options(CLI::App& command, const KernelTemplate& kernel_template,
                        ChoiceOptions& options) {
  add_problem_options(command, kernel_template, options.problem);
  const auto add = [&](const char* name, std::string& value, const char* help) {
    command.add_option(name, value, help)->group("Configurations");
  };
  add("--config", options.config, "One, as reports print it; without these options: the default");
  add("--variant", options.variant, "Of this variant only");
  add("--sample", options.sample, "So many random ones");
}

std::vector<Candidate> candidates_of_problem(const KernelTemplate& kernel_template,
                                             const ChoiceOptions& options, const DeviceInfo& device,
                                             std::uint64_t seed) {
  if (!options.config.empty() && (!options.sample.empty() || !options.variant.empty())) {
    throw CommandError(exit_usage,
                       "--config: names one configuration, without --variant and --sample");
  }
  const auto problem = make_problem(kernel_template, options.problem);
  if (!problem) throw CommandError(exit_usage, problem.failure().message);
  const Space space = kernel_template.space(*problem, device);
  if (!options.config.empty()) {
    auto config = space.parse(options.config);
    if (!config) throw CommandError(exit_usage, "--config: " + config.failure().message);
    return {{*problem, *std::move(config)}};
  }
  check_variant(kernel_template, options.variant);
  const Config standard = kernel_template.default_config(*problem, device);
  const bool fits = options.variant.empty() || standard.variant == options.variant;
  if (options.sample.empty() && fits) return {{*problem, standard}};
  const std::size_t count =
      options.sample.empty() ? 1 : read_count("--sample", options.sample, most_choices);
  auto drawn = sample_candidates(kernel_template, *problem, device, options.variant, count, seed);
  if (drawn.empty() && !options.variant.empty()) {
    refuse_variant(kernel_template, options.variant, {*problem}, device);
  }
  return drawn;
}

std::vector<Candidate> candidates_of_random_problems(const KernelTemplate& kernel_template,
                                                     const ChoiceOptions& options,
                                                     const DeviceInfo& device,
                                                     const std::string& option,
                                                     const std::string& count, std::uint64_t seed) {
  if (options.names_problem()) {
    throw CommandError(
        exit_usage,
        option + ": draws problems itself, without options for them, --config and --sample");
  }
  check_variant(kernel_template, options.variant);
  auto drawn = random_candidates(kernel_template, device, options.variant,
                                 read_count(option, count, most_choices), seed);
  if (drawn.empty() && !options.variant.empty()) {
    std::vector<Problem> problems;
    for (const DTypes& types : kernel_template.dtypes) {
      problems.push_back(typical_problem(kernel_template, types));
    }
    refuse_variant(kernel_template, options.variant, problems, device);
  }
  return drawn;
}

}  // namespace greta::tuner::cli
