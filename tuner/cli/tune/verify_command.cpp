#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "db/json.hpp"
#include "kernels/coverage.hpp"
#include "tuner/cli/checks.hpp"
#include "tuner/cli/choice_options.hpp"
#include "tuner/cli/interrupt.hpp"
#include "tuner/cli/numbers.hpp"
#include "tuner/cli/paths.hpp"
#include "tuner/cli/tune/commands.hpp"
#include "tuner/evaluate/worker_evaluator.hpp"
#include "tuner/report/format.hpp"

namespace greta {
namespace {

struct VerifyOptions {
  std::string device = "auto";
  ChoiceOptions choice;
  std::string problems;
  std::string seed;
  bool sanitize = false;
  bool json = false;
};

/// How many of a variant, with types like "f16 to f32", were right and wrong.
struct Tally {
  std::size_t right = 0;
  std::size_t wrong = 0;
};

struct Verification {
  DeviceInfo device;
  std::uint64_t seed = 0;
  std::map<std::pair<std::string, std::string>, Tally> tallies;  // by variant and types
  double worst = 0;                                              // error over bound
  std::vector<Trial> failures;
  std::size_t left = 0;              // not checked, as it was interrupted
  std::optional<Coverage> coverage;  // where problems are random: one problem meets little
};

std::string types_of(const Problem& problem) {
  return fmt::format("{} to {}", to_string(problem.dtype), to_string(problem.out_dtype));
}

Verification verify(Evaluator& evaluator, const std::vector<Choice>& choices, std::uint64_t seed,
                    std::optional<Coverage> coverage) {
  Verification result{evaluator.device(), seed, {}, 0, {}, choices.size(), std::move(coverage)};
  TrialLimits limits;
  limits.run_s = 120;  // hip-host takes its time
  for (const auto& [problem, config] : choices) {
    const bool first = limits.inputs == InputStyle::plain;  // they take turns
    limits.inputs = first ? InputStyle::adversarial : InputStyle::plain;
    Trial trial = evaluator.verify(problem, config, seed++, limits);
    if (stop_requested()) break;  // it may be what ended the trial
    --result.left;
    if (result.coverage) result.coverage->add({problem, config});
    Tally& tally = result.tallies[{config.variant, types_of(problem)}];
    ++(trial.ok() ? tally.right : tally.wrong);
    if (trial.ok()) {
      result.worst = std::max(result.worst, trial.verdict.ratio());
    } else {
      fmt::print(stderr, "{} | {}: {}: {}\n{}", problem.key(), config.text(),
                 to_string(*trial.failure), trial.message, trial.log);
      result.failures.push_back(std::move(trial));
    }
  }
  return result;
}

void print_coverage(const Coverage& coverage) {
  constexpr std::size_t most_named = 8;
  const auto missing = coverage.missing();
  fmt::print("{}", format_row("coverage", fmt::format("{} of {} cases of the kernels met",
                                                      coverage.met(), coverage.all())));
  if (missing.empty()) return;
  const std::size_t named = std::min(missing.size(), most_named);
  const auto end = missing.begin() + static_cast<std::ptrdiff_t>(named);
  std::string text = fmt::format("{}", fmt::join(missing.begin(), end, ", "));
  if (missing.size() > named)
    text += fmt::format(" and {} more, see --json", missing.size() - named);
  fmt::print("{}", format_row("not met", text));
}

void print_text(const Verification& result) {
  fmt::print("{} {}\n", result.device.id(), result.device.name);
  std::size_t right = 0;
  for (const auto& [key, tally] : result.tallies) {
    right += tally.right;
    fmt::print("{}", format_row(key.first, fmt::format("{}: {} right, {} wrong", key.second,
                                                       tally.right, tally.wrong)));
  }
  fmt::print("{}", format_row("all", fmt::format("{} of {} right, at most {} of the bound; seed {}",
                                                 right, right + result.failures.size(),
                                                 format_share(result.worst), result.seed)));
  if (result.coverage) print_coverage(*result.coverage);
  if (result.left > 0)
    fmt::print("{}", format_row("interrupted", fmt::format("{} not checked", result.left)));
}

void print_json(const Verification& result) {
  nlohmann::json variants = nlohmann::json::array();
  for (const auto& [key, tally] : result.tallies) {
    variants.push_back({{"variant", key.first},
                        {"types", key.second},
                        {"right", tally.right},
                        {"wrong", tally.wrong}});
  }
  nlohmann::json failures = nlohmann::json::array();
  for (const auto& trial : result.failures) failures.push_back(to_json(trial));
  nlohmann::json coverage;
  if (result.coverage) {
    coverage = {{"cases", result.coverage->all()},
                {"met", result.coverage->met()},
                {"missing", result.coverage->missing()}};
  }
  const nlohmann::json object{{"device", to_json(result.device)},
                              {"seed", result.seed},
                              {"variants", variants},
                              {"worst_share_of_bound", result.worst},
                              {"coverage", coverage},
                              {"not_checked", result.left},
                              {"failures", failures}};
  fmt::print("{}\n", object.dump(2));
}

bool draws_problems(const VerifyOptions& options) {
  return !options.choice.names_problem() || !options.problems.empty();
}

/// What is to be verified. All input is checked here.
std::vector<Choice> choices(const KernelTemplate& kernel_template, const VerifyOptions& options,
                            const DeviceInfo& device, std::uint64_t seed) {
  auto chosen =
      draws_problems(options)
          ? choices_of_random_problems(kernel_template, options.choice, device, "--problems",
                                       options.problems.empty() ? "200" : options.problems, seed)
          : choices_of_problem(kernel_template, options.choice, device, seed);
  if (chosen.empty()) {
    throw CommandError(exit_usage, fmt::format("{} has no configuration on {}",
                                               kernel_template.name, device.id()));
  }
  check_fits(chosen.front().problem, device, {});  // random ones are small
  return chosen;
}

int verify_operation(const KernelTemplate& kernel_template, const VerifyOptions& options) {
  catch_interrupts();
  const auto devices = select_devices(options.device);
  if (devices.size() != 1) {
    throw CommandError(exit_usage, fmt::format("--device {}: must be one device", options.device));
  }
  if (options.sanitize) check_sanitizes(devices.front());
  EvaluatorOptions evaluator;
  evaluator.device = devices.front().info.id();
  evaluator.cache_directory = default_cache_directory();
  evaluator.sanitize = options.sanitize;
  const std::uint64_t seed = read_seed(options.seed);
  const auto wanted = choices(kernel_template, options, devices.front().info, seed);
  std::optional<Coverage> coverage;
  if (draws_problems(options))
    coverage.emplace(kernel_template, devices.front().info, options.choice.variant);
  WorkerEvaluator worker({"/proc/self/exe", "worker"}, evaluator);
  const auto result = verify(worker, wanted, seed, std::move(coverage));
  options.json ? print_json(result) : print_text(result);
  return result.failures.empty() && result.left == 0 ? exit_done : exit_failed;
}

}  // namespace

void add_verify_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "verify", "Check configurations of an operation, of random problems or a given one");
  command->require_subcommand(1);
  for (const auto* kernel_template : catalog()) {
    auto* operation = command->add_subcommand(kernel_template->name, kernel_template->summary);
    auto options = std::make_shared<VerifyOptions>();
    add_choice_options(*operation, *kernel_template, options->choice);
    operation
        ->add_option("--device", options->device, "auto, an id as vulkan:0, or a part of a name")
        ->capture_default_str();
    operation->add_option("--problems", options->problems,
                          "So many random problems, where none is given [200]");
    operation->add_option("--seed", options->seed,
                          "Of problems, configurations and inputs; random when left out");
    operation->add_flag("--sanitize", options->sanitize,
                        "Under AddressSanitizer and UBSan, on a hip-host device");
    operation->add_flag("--json", options->json, "Print one JSON object (docs/json.md)");
    operation->callback([&action, kernel_template, options] {
      action = [kernel_template, options] { return verify_operation(*kernel_template, *options); };
    });
  }
}

}  // namespace greta
