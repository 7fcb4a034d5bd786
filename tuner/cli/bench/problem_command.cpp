#include <fmt/format.h>

#include <memory>

#include "kernels/model/problem_rules.hpp"
#include "tuner/bench/same_operation.hpp"
#include "tuner/cli/bench/commands.hpp"
#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/options/problem_options.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/program/paths.hpp"

namespace greta::tuner::cli {
namespace {

struct ProblemOptions {
  BenchOptions bench;
  ProblemRequest request;
  std::vector<std::string> configs;
  std::vector<std::string> variants;
  std::vector<std::string> expect;
  std::vector<std::string> own;  ///< descriptions
  bool each_variant = false;
  bool parts = false;
};

/// Returns the problem of kernels of the user's own that compute the same.
std::vector<PresetProblem> own_problems(const Operation& operation, const Problem& problem,
                                        const std::vector<std::string>& descriptions) {
  constexpr std::uint64_t seed = 1;
  std::vector<PresetProblem> problems;
  for (auto at = descriptions.begin(); at != descriptions.end(); ++at) {
    const std::string& file = *at;
    check_exists("--own", file);
    if (std::any_of(descriptions.begin(), at, [&](const std::string& earlier) {
          return std::filesystem::equivalent(earlier, file);
        })) {
      throw CommandError(exit_usage, fmt::format("--own {}: is given twice", file));
    }
    const Operation& own = add_described(file);
    auto same = same_problem(operation, problem, own);
    const auto checked = same ? check_same(operation, problem, own, seed) : same.failure();
    if (!checked) {
      throw CommandError(exit_usage, fmt::format("--own {}: {}", file, checked.failure().message));
    }
    problems.push_back({*std::move(same), file, {}, own.variant_names()});
  }
  return problems;
}

int run_problem(const Operation& operation, const ProblemOptions& options, bool exporting) {
  auto problem = make_problem(operation, options.request);
  if (!problem) throw bad_option(problem.failure());
  BenchOptions bench = options.bench;
  PresetProblem ways{*std::move(problem), "the command line", options.configs, options.variants};
  for (const std::string& text : options.expect) {
    auto gate = parse_gate(text, operation.variant_names(), {});
    if (!gate) throw CommandError(exit_usage, "--expect: " + gate.failure().message);
    ways.expect.push_back(*std::move(gate));
  }
  if (options.each_variant) ways.variants = operation.variant_names();
  ways.parts = options.parts;
  if (options.parts && operation.parts_of(ways.problem).empty()) {
    throw CommandError(
        exit_usage,
        fmt::format("--parts: no other operations compute the parts of {}", ways.problem.key()));
  }
  const bool chosen = !ways.configs.empty() || !ways.variants.empty();
  if (!chosen && !options.parts) bench.both = true;  // the look-up's answer beside the default
  bench.own = own_problems(operation, ways.problem, options.own);
  bench.problem = std::move(ways);
  return run_bench(std::move(bench), exporting);
}

/// Adds the command `name`; `words` are those of an example's problem.
void add_problem_command(CLI::App& app, Action& action, const Operation& operation,
                         const std::string& name, const std::string& words) {
  auto* command = app.add_subcommand(name, operation.summary);
  command->group("One problem, in several ways");
  auto options = std::make_shared<ProblemOptions>();
  options->bench.db = default_database();
  add_problem_options(*command, operation, options->request);
  const auto group = "Configurations";
  command
      ->add_option("--config", options->configs,
                   "A configuration, as reports print it; may be repeated. Without these options: "
                   "what a look-up returns, and the default")
      ->allow_extra_args(false)
      ->group(group);
  command
      ->add_option("--variant", options->variants,
                   "The best known configuration of this variant; may be repeated")
      ->allow_extra_args(false)
      ->check(CLI::IsMember(operation.variant_names()))
      ->group(group);
  command
      ->add_flag("--each-variant", options->each_variant,
                 "The best known configuration of each variant: of the database's trials, else of "
                 "the variant's defaults")
      ->group(group);
  command
      ->add_option("--own", options->own,
                   "Also a kernel of your own that computes the same: its description, whose "
                   "dimensions have the same names (docs/your-kernel.md); may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->group(group);
  if (operation.parts) {
    command
        ->add_flag(
            "--parts", options->parts,
            "Also the operations that compute the same one after the other, each as a runtime "
            "would run it")
        ->group(group);
  }
  command->add_flag("--default", options->bench.both, "Also the default configuration")
      ->group(group);
  command
      ->add_flag("--each-backend", options->bench.each_backend,
                 "Also through the other APIs that reach the card")
      ->group(group);
  command
      ->add_option(
          "--expect", options->expect,
          "A limit, which the fastest configuration must keep (exit code 4): us <= 40, "
          "tflops >= 1.2, roofline >= 60 %, error <= 50 %, >= 1.1x default, >= 2x VARIANT, "
          ">= 10x vulkan:FILE.csv; may be repeated")
      ->type_name("LIMIT")
      ->allow_extra_args(false);
  add_run_options(*command, options->bench);
  const auto* exporting = command->get_option("--export");
  command->footer(fmt::format("Example:\n  greta-bench {} --each-variant", words));
  command->callback([&action, &operation, options, exporting] {
    action = [&operation, options, exporting] {
      return run_problem(operation, *options, exporting->count() > 0);
    };
  });
}

}  // namespace

void add_problem_commands(CLI::App& app, Action& action) {
  for (const Operation& operation : Catalog::built_in()) {
    add_problem_command(app, action, operation, operation.name,
                        example_problem(operation, operation.name));
  }
}

void add_own_problem_command(CLI::App& app, Action& action, const DescribedFile& description) {
  auto* command = app.add_subcommand("kernel", "A kernel of your own, as a file describes it");
  command->group("One problem, in several ways");
  add_kernels_option(*command);
  if (description.file.empty()) {
    auto file = std::make_shared<std::string>();
    command->add_option("file", *file, "The description (docs/your-kernel.md), or its name")
        ->required();
    command->footer("Example:\n  greta-bench kernel vector_add.jsonc --n 1000000");
    return;
  }
  const Operation& operation = add_described(description.file);
  refuse_names_of_options(description.file, [&] {
    add_problem_command(*command, action, operation, description.word,
                        example_problem(operation, "kernel " + description.word));
  });
  command->require_subcommand(1);
}

}  // namespace greta::tuner::cli
