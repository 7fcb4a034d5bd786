#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/catalog.hpp"
#include "tuner/cli/program/described_command.hpp"
#include "tuner/cli/tune/commands.hpp"

namespace greta::tuner::cli {
namespace {

constexpr auto examples = R"(Examples:
  greta-tune devices
  greta-tune gemm --m 4096 --n 4096 --k 4096
  greta-tune gemm --m 1 --n 4096 --k 4096 --dtype f16 --device vulkan:0 --budget 2m
  greta-tune gemm --m 512 --n 512 --k 512 --json > winner.json
  greta-tune preset smoke
  greta-tune model --config llama-2-7b --budget 10m
  greta-tune show)";

struct Command {
  std::string_view name;  // empty: those of all operations
  std::function<void(CLI::App&, Action&)> add;
};

/// Adds the command that the first word names, and only this one: all commands have thousands of
/// options, which take most of a short run's time. Without such a word, adds all of them.
void add_commands(CLI::App& app, Action& action, std::span<char*> words) {
  const DescribedCommand described(words, {"kernel", "verify", "compile", "profile"});
  const auto with_file = [&described](const char* name, auto add) {
    return Command{name, [&described, name, add](CLI::App& to, Action& chosen) {
                     add(to, chosen, described.of(name));
                   }};
  };
  const std::vector<Command> commands{{"devices", add_devices_command},
                                      {"operations", add_operations_command},
                                      {"", add_tune_commands},
                                      with_file("kernel", add_kernel_command),
                                      {"preset", add_preset_command},
                                      {"capture", add_capture_command},
                                      {"from-capture", add_from_capture_command},
                                      {"model", add_model_command},
                                      {"show", add_show_command},
                                      with_file("verify", add_verify_command),
                                      with_file("compile", add_compile_command),
                                      with_file("profile", add_profile_command),
                                      {"remote", add_remote_command},
                                      {"replay", add_replay_command},
                                      {"prior", add_prior_command},
                                      {"run-case", add_run_case_command},
                                      {"diagnose", add_diagnose_command},
                                      {"inspect", add_inspect_command},
                                      {"worker", add_worker_command}};
  const std::string_view first = words.size() > 1 ? words[1] : "";
  if (const Operation* operation = Catalog::built_in().find(first)) {
    return add_tune_command(app, action, *operation);
  }
  for (const Command& command : commands) {
    if (!first.empty() && command.name == first) return command.add(app, action);
  }
  for (const Command& command : commands) command.add(app, action);
}

}  // namespace
}  // namespace greta::tuner::cli

int main(int argc, char** argv) {
  const auto add_commands = [&](CLI::App& app, greta::tuner::cli::Action& action) {
    greta::tuner::cli::add_commands(app, action, {argv, static_cast<std::size_t>(argc)});
  };
  return greta::tuner::cli::run_tool({"greta-tune",
                                      "GRETA finds the fastest correct GPU kernel for an "
                                      "operation, a shape and a device, and stores it.",
                                      greta::tuner::cli::examples, add_commands},
                                     argc, argv);
}
