#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/pipeline/compute/capture.hpp"
#include "tuner/cli/options/device_options.hpp"
#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/options/tuning_options.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/tune/commands.hpp"
#include "tuner/cli/tune/task_list.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

/// Reports that the capture's times come from another device, where the shares may differ. This is
/// not an error.
void tell_other_devices(const Capture& capture, const TuningOptions& options) {
  for (const ProbedDevice& device : select_devices(options.device)) {
    if (device.info.fingerprint() == capture.fingerprint) continue;
    print(stderr, "captured on {}, tuned on {} ({}): times are those of the former\n",
          capture.device, device.info.name, device.info.id());
  }
}

int tune_capture(const std::string& file, const TuningOptions& options) {
  const auto capture = read_capture(file, known_operations());
  if (!capture) throw CommandError(exit_usage, capture.failure().message);
  std::vector<WeightedProblem> problems;
  for (const CapturedProblem& each : capture->problems) {
    // Without times, problems that ran more often come first.
    const double us = each.device_us > 0 ? each.device_us : static_cast<double>(each.count);
    problems.push_back({each.problem, us});
  }
  if (problems.empty()) throw CommandError(exit_usage, file + ": has no problems to tune");
  tell_other_devices(*capture, options);
  const auto distribution = distribute(std::move(problems), read_budget(options.budget));
  report_left_out(distribution, options);
  nlohmann::json report{{"capture", file}};
  const bool all = tune_list(distribution.tasks, options, report);
  if (options.json) print_json(report);
  return all ? exit_done : exit_failed;
}

}  // namespace

void add_from_capture_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "from-capture",
      "Tune the problems that an application ran, as greta-run --capture recorded them");
  auto file = std::make_shared<std::string>();
  auto options = std::make_shared<TuningOptions>();
  command->add_option("file", *file, "The capture")->required();
  add_tuning_options(*command, *options, "10m");
  command->callback([&action, file, options] {
    action = [file, options] { return tune_capture(*file, *options); };
  });
}

}  // namespace greta::tuner::cli
