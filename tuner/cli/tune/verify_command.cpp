#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "db/json.hpp"
#include "kernels/sampling/coverage.hpp"
#include "runtime/device/system/log.hpp"
#include "tuner/cli/options/choice_options.hpp"
#include "tuner/cli/options/device_options.hpp"
#include "tuner/cli/options/kept_cases.hpp"
#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/options/problem_options.hpp"
#include "tuner/cli/options/verified_kernels.hpp"
#include "tuner/cli/program/interrupt.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/cli/program/terminal.hpp"
#include "tuner/cli/program/validate.hpp"
#include "tuner/cli/tune/commands.hpp"
#include "tuner/cli/tune/verified_device.hpp"
#include "tuner/evaluate/worker_evaluator.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"
#include "tuner/tuning/device_selection.hpp"

namespace greta::tuner::cli {
namespace {

namespace fs = std::filesystem;

struct VerifyOptions {
  std::string device = "auto";
  ChoiceOptions choice;
  std::string problems;
  std::string seed;
  fs::path keep_failed;  ///< folder of cases; empty: of described kernels only
  bool sanitize = false;
  bool first = false;    ///< stop at the first failure
  std::string only;      ///< numbers of problems; empty: all
  fs::path sources;      ///< folder for kernel sources; empty: check the kernels
  int deadline_s = 120;  ///< deadline of one launch; hip-host is slow
  bool json = false;
};

/// Numbers of passed and failed checks of a variant, with types like "f16 to f32".
struct Tally {
  std::size_t right = 0;
  std::size_t wrong = 0;
};

struct Verification {
  VerifiedDevice device;
  std::uint64_t seed = 0;
  std::map<std::pair<std::string, std::string>, Tally> tallies;  // key: variant and types
  double worst = 0;                                              // error divided by bound
  std::map<std::size_t, Trial> failures;                         // key: problem number, from 1
  std::size_t unranked = 0;          // algorithms that the vendor's library does not have
  std::string refusal;               // what the library says of the last of them
  std::size_t left = 0;              // not checked after an interrupt or with --first
  std::optional<Coverage> coverage;  // random problems only: a single problem covers little
};

std::string types_of(const Problem& problem) {
  return fmt::format("{} to {}", to_string(problem.dtype), to_string(problem.out_dtype));
}

/// One evaluator, or with --sanitize one for each kind of sanitizer.
using Evaluators = std::vector<std::unique_ptr<WorkerEvaluator>>;

/// Verifies a candidate in each evaluator on inputs of each style, up to the first failure. A wrong
/// result does not hide the report of a race, which may be its cause.
Trial verify_styles(const Evaluators& evaluators, const Candidate& choice, std::uint64_t seed,
                    const std::vector<InputStyle>& styles, TrialLimits limits) {
  std::optional<Trial> worst, failed;
  for (const auto& evaluator : evaluators) {
    for (const InputStyle style : styles) {
      limits.inputs = style;
      Trial next = evaluator->verify(choice.problem, choice.config, seed, limits);
      if (next.failure == Status::crash) return next;
      if (!next.ok()) {
        if (!failed) failed = std::move(next);
        break;
      }
      if (!worst || worst->verdict.ratio() < next.verdict.ratio()) worst = std::move(next);
    }
    if (failed && failed->failure != Status::correctness) break;
  }
  return failed ? *std::move(failed) : *std::move(worst);
}

/// Adds the checks of `choices` to `result`: random problems have inputs of one style in turn, a
/// given one of both. Throws Error, `interrupted` after an interrupt.
void verify(const Evaluators& evaluators, const std::map<std::size_t, Candidate>& choices,
            const VerifyOptions& options, Verification& result) {
  TrialLimits limits;
  limits.run_s = options.deadline_s;
  constexpr int others = 2;  // of a random problem, with the same kernels
  if (result.coverage && !options.sanitize) limits.small = others;
  for (const auto& [number, choice] : choices) {
    const auto& [problem, config] = choice;
    std::vector<InputStyle> styles{InputStyle::adversarial, InputStyle::plain};
    if (result.coverage) styles = {styles[(number - 1) % 2]};
    Trial trial = verify_styles(evaluators, choice, result.seed + number - 1, styles, limits);
    --result.left;
    if (result.coverage) result.coverage->add(choice);
    if (config.variant == vendor_variant && trial.failure == Status::constraints) {
      ++result.unranked;
      result.refusal = trial.message;
      continue;
    }
    Tally& tally = result.tallies[{config.variant, types_of(problem)}];
    ++(trial.ok() ? tally.right : tally.wrong);
    if (trial.ok()) {
      result.worst = std::max(result.worst, trial.verdict.ratio());
    } else {
      print(stderr, "{} | {}: {}: {}\n", problem.key(), config.shown(), to_string(*trial.failure),
            trial.message);
      print_text(stderr, trial.log);
      if (!trial.log.empty() && !trial.log.ends_with('\n')) print(stderr, "\n");
      result.failures.emplace(number, std::move(trial));
      if (options.first) break;
    }
  }
}

void verify_usual(EvaluatorOptions evaluator, const std::map<std::size_t, Candidate>& choices,
                  const VerifyOptions& options, Verification& result) {
  std::vector<Sanitize> kinds{Sanitize::none};
  if (options.sanitize) kinds = {Sanitize::address, Sanitize::races};
  Evaluators workers;
  for (const Sanitize kind : kinds) {
    evaluator.sanitize = kind;
    workers.push_back(std::make_unique<WorkerEvaluator>(worker_command(), evaluator));
  }
  result.device.info = workers.front()->device();  // its compiler may have sanitizers
  verify(workers, choices, options, result);
}

/// Verifies kernels on a device with emulated matrices. Their failures are not kept: other commands
/// could not run the cases.
void verify_emulated(EvaluatorOptions evaluator, const std::map<std::size_t, Candidate>& choices,
                     const VerifyOptions& options, Verification& result) {
  evaluator.emulated_matrices = true;
  evaluator.keep_failed.clear();
  Evaluators workers;
  workers.push_back(std::make_unique<WorkerEvaluator>(worker_command(), evaluator));
  const std::size_t before = result.failures.size();
  verify(workers, choices, options, result);
  if (options.keep_failed.empty() || result.failures.size() == before) return;
  log(LogLevel::warning, "--keep-failed: failures with emulated matrices are not kept");
}

/// Verifies in worker processes. After an interrupt, the result contains what was checked before.
Verification verify_in_workers(const EvaluatorOptions& evaluator, const VerifiedDevice& device,
                               const std::map<std::size_t, Candidate>& choices, std::uint64_t seed,
                               const VerifyOptions& options, std::optional<Coverage> coverage) {
  Verification result{device, seed, {}, 0, {}, 0, {}, choices.size(), std::move(coverage)};
  std::map<std::size_t, Candidate> usual, emulated;
  for (const auto& [number, choice] : choices) {
    (device.emulates(choice.config.variant) ? emulated : usual).emplace(number, choice);
  }
  try {
    if (!usual.empty()) verify_usual(evaluator, usual, options, result);
    if (options.first && !result.failures.empty()) return result;
    if (!emulated.empty()) verify_emulated(evaluator, emulated, options, result);
  } catch (const Error& error) {
    if (error.status() != Status::interrupted) throw;
  }
  return result;
}

void show_coverage(const Coverage& coverage) {
  constexpr std::size_t most_named = 8;
  const auto missing = coverage.missing();
  print_text(format_row("coverage", fmt::format("{} of {} cases of the kernels covered",
                                                coverage.met(), coverage.all())));
  if (missing.empty()) return;
  const std::size_t named = std::min(missing.size(), most_named);
  const auto end = missing.begin() + static_cast<std::ptrdiff_t>(named);
  std::string text = fmt::format("{}", fmt::join(missing.begin(), end, ", "));
  if (missing.size() > named)
    text += fmt::format(" and {} more, see --json", missing.size() - named);
  print_text(format_row("not covered", text));
}

void show_text(const Verification& result) {
  const VerifiedDevice& device = result.device;
  print("{} {}\n", device.info.id(), device.info.name);
  std::set<std::string> emulated;
  for (const auto& [key, tally] : result.tallies) {
    if (device.emulates(key.first)) emulated.insert(key.first);
  }
  if (!emulated.empty()) {
    print_text(format_row(
        "emulated", fmt::format("the cooperative matrices of {}", fmt::join(emulated, ", "))));
  }
  std::size_t right = 0;
  for (const auto& [key, tally] : result.tallies) {
    right += tally.right;
    print_text(format_row(
        key.first, fmt::format("{}: {} passed, {} failed", key.second, tally.right, tally.wrong)));
  }
  print_text(format_row(
      "all", fmt::format("{} of {} passed, at most {} of the bound; seed {}", right,
                         right + result.failures.size(), format_share(result.worst), result.seed)));
  if (result.coverage && result.left == 0) show_coverage(*result.coverage);
  if (result.unranked > 0)
    print_text(format_row("not ranked", fmt::format("{} that the library has no algorithm for",
                                                    format_count(result.unranked, "candidate"))));
  if (result.left > 0)
    print_text(format_row("stopped", fmt::format("{} not checked", result.left)));
}

void show_json(const Verification& result) {
  nlohmann::json variants = nlohmann::json::array();
  for (const auto& [key, tally] : result.tallies) {
    variants.push_back({{"variant", key.first},
                        {"types", key.second},
                        {"right", tally.right},
                        {"wrong", tally.wrong}});
  }
  nlohmann::json failures = nlohmann::json::array();
  for (const auto& [number, trial] : result.failures) {
    failures.push_back(to_json(trial));
    failures.back()["number"] = number;
  }
  nlohmann::json coverage;
  if (result.coverage && result.left == 0) {
    coverage = {{"cases", result.coverage->all()},
                {"met", result.coverage->met()},
                {"missing", result.coverage->missing()}};
  }
  const nlohmann::json object{{"device", to_json(result.device.info)},
                              {"emulated", result.device.emulated},
                              {"seed", result.seed},
                              {"variants", variants},
                              {"worst_share_of_bound", result.worst},
                              {"coverage", coverage},
                              {"not_ranked", result.unranked},
                              {"not_checked", result.left},
                              {"failures", failures}};
  print_json(object);
}

bool draws_problems(const VerifyOptions& options) {
  return !options.choice.names_problem() || !options.problems.empty();
}

/// Returns the candidates to verify. All input is checked here.
std::vector<Candidate> choices(const Operation& operation, const VerifyOptions& options,
                               const VerifiedDevice& device, std::uint64_t seed) {
  auto chosen = draws_problems(options)
                    ? random_problems(operation, options.choice, device,
                                      options.problems.empty() ? "200" : options.problems, seed)
                    : candidates_of_problem(operation, options.choice,
                                            device.running(options.choice.variant_named()), seed);
  if (chosen.empty()) {
    throw CommandError(
        exit_usage, fmt::format("{} has no configuration on {}", operation.name, device.info.id()));
  }
  value_of(check_fits(operation, chosen.front().problem, device.info));  // random ones are small
  return chosen;
}

/// Returns candidates by their number, from 1: those that --only names, or all.
std::map<std::size_t, Candidate> numbered(std::vector<Candidate> choices, const std::string& only) {
  std::map<std::size_t, Candidate> by_number;
  for (std::size_t i = 0; i < choices.size(); ++i) by_number.emplace(i + 1, std::move(choices[i]));
  if (only.empty()) return by_number;
  std::map<std::size_t, Candidate> named;
  for (const auto& word : CLI::detail::split(only, ',')) {
    const auto number = read_count("--only", word, choices.size());
    named.insert(by_number.extract(number));
  }
  return named;
}

/// Writes the kernels of each candidate as FOLDER/NUMBER-KERNEL.glsl or .hip.
void write_sources(const Operation& operation, const VerifiedDevice& device,
                   const std::map<std::size_t, Candidate>& choices, const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  for (const auto& [number, choice] : choices) {
    const DeviceInfo& info = device.running(choice.config.variant);
    const auto plan = operation.plan(choice.problem, info, choice.config).value();
    for (std::size_t i = 0; i < plan.sources.size(); ++i) {
      const auto file =
          folder / fmt::format("{}-{}.{}", number, i, to_string(plan.sources[i].language));
      if (!(std::ofstream(file, std::ios::binary) << plan.sources[i].text).flush()) {
        throw CommandError(exit_failed,
                           fmt::format("--sources {}: can't be written", file.string()));
      }
    }
  }
}

int verify_operation(const Operation& operation, const VerifyOptions& options) {
  catch_interrupts();
  const auto devices = select_devices(devices_for(operation.name, options.device));
  if (devices.size() != 1) {
    throw CommandError(exit_usage, fmt::format("--device {}: must be one device", options.device));
  }
  if (options.sanitize) check_sanitizes(devices.front());
  EvaluatorOptions evaluator;
  evaluator.catalog = operations_in_use();
  evaluator.device = devices.front().info.id();
  evaluator.cache_directory = default_cache_directory();
  evaluator.stop = &stop_requested();
  evaluator.vendor = options.choice.names_vendor();
  const VerifiedDevice device = device_to_verify(operation, devices.front().info, evaluator.vendor);
  const std::uint64_t seed = read_seed(options.seed);
  std::optional<EndsAtOnce> prepares(std::in_place);
  const auto wanted = numbered(choices(operation, options, device, seed), options.only);
  if (!options.sources.empty()) {
    write_sources(operation, device, wanted, options.sources);
    return exit_done;
  }
  std::optional<Coverage> coverage;
  if (draws_problems(options)) {
    const bool emulates = !device.emulated.empty();
    coverage.emplace(operation, emulates ? *device.emulating : device.info, options.choice.variant);
  }
  evaluator.keep_failed = folder_of_failures(options.keep_failed, is_described(operation.name));
  KeptCases kept(evaluator.keep_failed);
  prepares.reset();
  const auto result =
      verify_in_workers(evaluator, device, wanted, seed, options, std::move(coverage));
  answer_interrupt();
  options.json ? show_json(result) : show_text(result);
  kept.tell();
  if (!result.failures.empty()) remember_failed(operation.name);
  if (!result.failures.empty() || result.left > 0) return exit_failed;
  if (result.tallies.empty()) {
    throw CommandError(exit_failed, "nothing was verified: " + result.refusal);
  }
  remember_verified(operation.name);
  return exit_done;
}

void add_verified_operation(CLI::App& app, Action& action, const Operation& operation,
                            const std::string& name) {
  auto* sub = app.add_subcommand(name, operation.summary);
  auto options = std::make_shared<VerifyOptions>();
  add_choice_options(*sub, operation, options->choice);
  sub->add_option("--device", options->device, "auto, an id as vulkan:0, or a part of a name")
      ->capture_default_str();
  add_validate_option(*sub, options->device);
  sub->add_option("--problems", options->problems,
                  "Number of random problems, if none is given [200]");
  sub->add_option("--seed", options->seed,
                  "Seed of problems, configurations and inputs; random by default");
  sub->add_flag("--sanitize", options->sanitize,
                "Find accesses out of bounds and races in shared memory, on a hip-host device");
  sub->add_flag("--first", options->first, "Stop at the first failure");
  add_whole_number(*sub, "--deadline", options->deadline_s, "Timeout of a launch in seconds", 1,
                   86400)
      ->capture_default_str();
  add_keep_failed(*sub, options->keep_failed);
  add_kernels_option(*sub);
  add_templates_option(*sub);
  sub->add_option("--only", options->only,
                  "Only the problems with these numbers, as 3,17; the first one is 1")
      ->group("Development");
  sub->add_option("--sources", options->sources,
                  "Write the kernels' sources to this folder, and check nothing")
      ->group("Development");
  sub->add_flag("--json", options->json, "Print one JSON object (docs/json.md)");
  sub->footer(fmt::format(
      "Examples:\n  greta-tune verify {} --problems 50\n  greta-tune verify {} --sample 20", name,
      example_problem(operation, name)));
  sub->callback([&action, &operation, options] {
    action = [&operation, options] { return verify_operation(operation, *options); };
  });
}

}  // namespace

void add_verify_command(CLI::App& app, Action& action, const DescribedFile& description) {
  auto* command = app.add_subcommand(
      "verify", "Check configurations of an operation, of random problems or a given one");
  command->require_subcommand(1);
  command->footer(
      "A problem needs all of its dimensions; without any, problems are random. Examples:\n"
      "  greta-tune verify gemm --problems 50 --device vulkan:0\n"
      "  greta-tune verify softmax --rows 64 --cols 1000 --dtype f16 --sample 20");
  if (!description.file.empty()) {
    refuse_names_of_options(description.file, [&] {
      add_verified_operation(*command, action, add_described(description.file), description.word);
    });
    return;
  }
  for (const Operation& operation : Catalog::built_in()) {
    add_verified_operation(*command, action, operation, operation.name);
  }
}

}  // namespace greta::tuner::cli
