#include <fmt/format.h>

#include "kernels/catalog.hpp"
#include "tuner/cli/commands.hpp"
#include "tuner/cli/tuning.hpp"
#include "tuner/report/report.hpp"

namespace greta {
namespace {

/// One operation's own options, as text; the catalog turns them into a problem.
struct OperationOptions {
  TuningOptions tuning;
  ProblemRequest problem;
  std::vector<std::string> try_first;
};

int tune_one(const KernelTemplate& kernel_template, const OperationOptions& options) {
  auto problem = make_problem(kernel_template, options.problem);
  if (!problem) throw CommandError(exit_usage, problem.failure().message);
  const TuningTask task{*problem, options.try_first};
  Tuning tuning(options.tuning, {task});
  const SessionResult result = tuning.run(task);
  const std::string database = tuning.database().string();
  if (options.tuning.json) {
    fmt::print("{}\n", report_json(result, database).dump(2));
  } else {
    fmt::print("{}", report_text(result, database));
  }
  tuning.write_csv(result);
  return result.winner ? exit_done : exit_failed;
}

void add_operation(CLI::App& app, Action& action, const KernelTemplate& kernel_template) {
  auto* command = app.add_subcommand(kernel_template.name, kernel_template.summary);
  auto options = std::make_shared<OperationOptions>();
  const auto add = [&](const std::string& name, const std::string& help) {
    command->add_option_function<std::string>(
        "--" + name,
        [options, name](const std::string& text) {
          options->problem.values.emplace_back(name, text);
        },
        help);
  };
  for (const auto& dimension : kernel_template.dimensions) {
    add(dimension.name, dimension.help + " (needed)");
  }
  command->add_option("--dtype", options->problem.dtype, "Type of the inputs");
  command->add_option("--out-dtype", options->problem.out_dtype, "Type of the output");
  for (const auto& attribute : kernel_template.attributes) {
    add(attribute.name, fmt::format("{} [{}]", attribute.help, attribute.fallback));
  }
  command
      ->add_option("--try", options->try_first,
                   "A configuration to try first, as reports print it; may be repeated")
      ->allow_extra_args(false);
  add_tuning_options(*command, options->tuning, "60s");
  command->callback([&action, &kernel_template, options] {
    action = [&kernel_template, options] { return tune_one(kernel_template, *options); };
  });
}

}  // namespace

void add_tune_commands(CLI::App& app, Action& action) {
  for (const auto* kernel_template : catalog()) add_operation(app, action, *kernel_template);
}

}  // namespace greta
