#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "runtime/device/backend.hpp"
#include "runtime/device/system/log.hpp"
#include "tuner/bundle/failed_choice.hpp"
#include "tuner/bundle/machine.hpp"
#include "tuner/cli/bench/commands.hpp"
#include "tuner/cli/options/device_options.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

/// Prints everything about an API's devices except what identifies an individual card.
int print_probe(const std::string& name) {
  set_log_sink([](LogLevel, std::string_view line) { print(stderr, "{}\n", line); });
  for (Backend* const backend : backends()) {
    if (to_string(backend->api()) != name) continue;
    const auto probed = probe_json(name, backend->probe());
    nlohmann::ordered_json found{{"backend", name}};  // first, so that the parent finds it
    for (const auto& [key, value] : probed.items()) found[key] = value;
    for (auto& device : found["devices"]) {
      device.erase("uuid");
      device.erase("fingerprint");
    }
    found["libraries"] = loaded_libraries();
    print_json(found, -1);
    return exit_done;
  }
  throw CommandError(exit_usage, name + ": no such API");
}

/// Reads from standard input: the device, and the failed configuration as a bundle's trial.json.
int write_choice(const std::string& folder) {
  const std::string input{std::istreambuf_iterator<char>(std::cin), {}};
  const auto json = nlohmann::json::parse(input);
  const auto& trial = json.at("trial");
  const auto device = select_device(json.at("device").get<std::string>()).value();
  CheckedChoice choice;
  choice.problem = trial.at("problem");
  choice.config = trial.at("config");
  choice.seed = trial.at("seed");
  const auto written = write_failed_choice(known_operations(), device.info, choice, {}, folder);
  if (!written) throw CommandError(exit_failed, written.failure().message);
  return exit_done;
}

}  // namespace

void add_bundle_commands(CLI::App& app, Action& action) {
  auto word = std::make_shared<std::string>();
  const auto add = [&](const char* name, const char* help, int (*run)(const std::string&)) {
    auto* command = app.add_subcommand(name, help);
    command->group("");  // hidden
    command->add_option("word", *word)->required();
    command->callback([&action, word, run] { action = [word, run] { return run(*word); }; });
  };
  add("probe", "List an API's devices (internal)", print_probe);
  add("failed-choice", "Write the files of a configuration (internal)", write_choice);
}

}  // namespace greta::tuner::cli
