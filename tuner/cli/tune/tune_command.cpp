#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "db/lookup/packing_choice.hpp"
#include "kernels/catalog.hpp"
#include "kernels/model/problem_rules.hpp"
#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/options/problem_options.hpp"
#include "tuner/cli/options/tuning_options.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/tune/commands.hpp"
#include "tuner/cli/tune/new_kernel.hpp"
#include "tuner/cli/tune/record_command.hpp"
#include "tuner/report/print.hpp"
#include "tuner/report/report.hpp"
#include "tuner/report/task_json.hpp"

namespace greta::tuner::cli {
namespace {

/// The options of one operation as text, which the catalog converts to a problem.
struct OperationOptions {
  TuningOptions tuning;
  ProblemRequest problem;
  std::vector<std::string> try_first;
  std::string variants;
  std::vector<std::string> fixed, ranges;
  RecordingOptions recording;
};

/// Adds what `--allow` permits to the problem, unless that has it already.
void allow_math(OperationOptions& options) {
  auto& values = options.problem.values;
  for (const std::string& word : options.tuning.allow) {
    if (word == "vendor") continue;
    const auto given = std::find_if(values.begin(), values.end(),
                                    [](const auto& value) { return value.first == "math"; });
    if (given == values.end()) {
      values.emplace_back("math", word);
    } else if (given->second != word) {
      throw CommandError(exit_usage,
                         fmt::format("--allow {} contradicts --math {}", word, given->second));
    }
  }
}

/// Removes `--packing any` of an operation with weights in rows or panels. Returns whether it was
/// there.
bool take_any_packing(const Operation& operation, ProblemRequest& request) {
  if (!db::has_packings(operation)) return false;
  return std::erase(request.values, std::pair<std::string, std::string>("packing", "any")) > 0;
}

int tune_one(const Operation& operation, OperationOptions options) {
  options.tuning.device = devices_for(operation.name, options.tuning.device);
  if (options.tuning.naive && !operation.naive) {
    throw CommandError(exit_usage, "--naive: " + operation.name + " has no kernel of that kind");
  }
  allow_math(options);
  const bool any_packing = take_any_packing(operation, options.problem);
  auto problem = make_problem(operation, options.problem);
  if (!problem) throw bad_option(problem.failure());
  std::vector<Problem> beside;
  if (any_packing) {
    ProblemRequest panels = options.problem;
    panels.set("packing", "panels");
    auto other = make_problem(operation, panels);
    if (!other) throw bad_option(other.failure());
    beside.push_back(*std::move(other));
  }
  check_recording_options(options.recording, options.tuning);
  const auto in_numbers_all = [&](std::vector<std::string> texts, const std::string& option) {
    for (std::string& text : texts) text = in_numbers(operation.name, text, option);
    return texts;
  };
  const SearchLimits limits = read_limits(options.variants, in_numbers_all(options.fixed, "--fix"),
                                          in_numbers_all(options.ranges, "--range"));
  if (!options.recording.file.empty()) {
    if (any_packing) throw CommandError(exit_usage, "--packing any: not with a recording");
    return record(operation, *problem, limits, options.recording, options.tuning);
  }
  const std::string database = options.tuning.db.string();
  const auto show = [&](const TuningTask&, const TaskResult& result) {
    if (options.tuning.json_lines) return;
    if (options.tuning.json) return print_json(task_json(result, database));
    for (const auto& session : result.sessions) print_text(report_text(session, database));
    if (!options.tuning.quiet) print_text(plots_of(result));
    if (result.contest) print_text(contest_text(result.entrants(), *result.contest));
  };
  const std::vector<TuningTask> tasks{
      {.problem = *problem,
       .try_first = read_configs(in_numbers_all(options.try_first, "--try")),
       .limits = limits,
       .where = {},
       .share = 1,
       .beside = beside}};
  return tune_tasks(tasks, options.tuning, show) ? exit_done : exit_failed;
}

std::vector<std::string> words_of_allow(const Operation& operation) {
  std::vector<std::string> words;
  if (has_vendor(operation)) words.emplace_back("vendor");
  for (const Attribute& attribute : operation.attributes) {
    if (!attribute.permission) continue;
    std::copy_if(attribute.allowed.begin(), attribute.allowed.end(), std::back_inserter(words),
                 [&](const std::string& word) { return word != attribute.fallback; });
  }
  return words;
}

void add_operation(CLI::App& app, Action& action, const Operation& operation,
                   const std::string& name, const std::string& words) {
  auto* command = app.add_subcommand(name, operation.summary);
  auto options = std::make_shared<OperationOptions>();
  add_problem_options(*command, operation, options->problem);
  if (db::has_packings(operation)) {
    CLI::Option* const packing = command->get_option("--packing");
    packing->description(packing->get_description() +
                         "; any: rows and panels, each with half the budget, and a comparison");
  }
  command
      ->add_option("--try", options->try_first,
                   "A configuration to try first, as reports print it; may be repeated")
      ->allow_extra_args(false);
  const std::string group = "Limits of the search";
  command
      ->add_option("--variant", options->variants, "Only this variant, or several as tiled,matrix")
      ->group(group);
  command
      ->add_option("--fix", options->fixed,
                   "Only this value of a parameter, as BM=128; may be repeated")
      ->allow_extra_args(false)
      ->group(group);
  command
      ->add_option("--range", options->ranges,
                   "Only these values of a parameter, as BK=16,32; may be repeated")
      ->allow_extra_args(false)
      ->group(group);
  add_recording_options(*command, options->recording);
  add_tuning_options(*command, options->tuning, "60s", words_of_allow(operation));
  const std::string example = "greta-tune " + words;
  command->footer("Examples:\n  " + example + "\n  " + example +
                  " --budget 30s --json > result.json");
  if (!operation.naive) command->get_option("--naive")->group("");  // rejected with a reason
  command->callback([&action, &operation, options] {
    action = [&operation, options] { return tune_one(operation, *options); };
  });
}

}  // namespace

void add_tune_command(CLI::App& app, Action& action, const Operation& operation) {
  add_operation(app, action, operation, operation.name, example_problem(operation, operation.name));
}

void add_tune_commands(CLI::App& app, Action& action) {
  for (const Operation& operation : Catalog::built_in()) add_tune_command(app, action, operation);
}

void add_kernel_command(CLI::App& app, Action& action, const DescribedFile& description) {
  auto* command = app.add_subcommand("kernel", "Tune a kernel of your own, as a file describes it");
  command->footer("Examples:\n  greta-tune kernel vector_add.jsonc --n 1000000");
  add_kernels_option(*command);
  if (description.file.empty()) {
    auto file = std::make_shared<std::string>(), name = std::make_shared<std::string>(),
         language = std::make_shared<std::string>(new_kernel_languages().front());
    auto* const positional = command->add_option(
        "file", *file,
        "The description, in GRETA's form or T1 (docs/your-kernel.md), or the name of one in the "
        "folder kernels of the configuration, ~/.config/greta");
    auto* const created =
        command
            ->add_option("--new", *name,
                         "Write NAME.jsonc and NAME.cu to this folder, a description and a kernel "
                         "to start from")
            ->type_name("NAME")
            ->excludes(positional);
    command->add_option("--language", *language, "Of --new: cuda, hip or glsl")
        ->type_name("LANGUAGE")
        ->check(CLI::IsMember(new_kernel_languages()))
        ->needs(created)
        ->capture_default_str();
    auto schema = std::make_shared<bool>(false);
    command->add_flag("--schema", *schema, "Print the JSON schema of descriptions, for editors")
        ->excludes(positional);
    command->callback([&action, name, language, schema] {
      action = [name, language, schema] {
        if (*schema) {
          print_text(std::string(description_schemas().front().text));
          return exit_done;
        }
        if (name->empty()) throw CommandError(exit_usage, "kernel: needs a file, or --new NAME");
        if (known_operations().find(*name) != nullptr) {
          throw CommandError(exit_usage,
                             fmt::format("--new {0}: there is an operation {0}", *name));
        }
        const auto kernel = write_new_kernel(*name, *language, ".");
        print("wrote {0}.jsonc and {1}; next: greta-tune kernel {0}.jsonc\n", *name, kernel);
        return exit_done;
      };
    });
    return;
  }
  const Operation& operation = add_described(description.file);
  refuse_names_of_options(description.file, [&] {
    add_operation(*command, action, operation, description.word,
                  example_problem(operation, "kernel " + description.word));
  });
  command->require_subcommand(1);
}

}  // namespace greta::tuner::cli
