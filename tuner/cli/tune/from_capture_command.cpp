#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "tuner/cli/options/device_options.hpp"
#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/options/tuning_options.hpp"
#include "tuner/cli/program/captured_files.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/tune/commands.hpp"
#include "tuner/cli/tune/task_list.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

/// Reports that the capture's times come from another device, where the shares may differ. This is
/// not an error.
void tell_other_devices(const CapturedWork& work, const TuningOptions& options) {
  if (work.devices.empty()) return;
  for (const ProbedDevice& device : select_devices(options.device)) {
    for (const auto& [name, fingerprint] : work.devices) {
      if (device.info.fingerprint() == fingerprint) continue;
      print(stderr, "captured on {}, tuned on {} ({}): times are those of the former\n", name,
            device.info.name, device.info.id());
    }
  }
}

int tune_capture(const std::vector<std::string>& files, const TuningOptions& options) {
  const Catalog catalog = known_operations();
  CapturedWork work = read_captured(files, catalog, "tune", options.quiet);
  tell_other_devices(work, options);
  const auto distribution = distribute(std::move(work.problems), read_budget(options.budget));
  report_left_out(distribution, options);
  nlohmann::json report{{"capture", files.front()}};
  if (files.size() > 1) report["captures"] = files;
  const bool all = tune_list(distribution.tasks, options, report);
  if (!work.not_tuned.empty()) report["not_tuned"] = not_tuned_json(work);
  if (options.json) print_json(report);
  return all ? exit_done : exit_failed;
}

}  // namespace

void add_from_capture_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "from-capture",
      "Tune the problems that an application ran, as greta-run --capture, greta.torch or "
      "libgreta-capture.so recorded them");
  auto files = std::make_shared<std::vector<std::string>>();
  auto options = std::make_shared<TuningOptions>();
  command->add_option("file", *files, "The capture; several are added up")->required();
  add_tuning_options(*command, *options, "10m");
  command->callback([&action, files, options] {
    action = [files, options] { return tune_capture(*files, *options); };
  });
}

}  // namespace greta::tuner::cli
