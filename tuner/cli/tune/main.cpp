#include <span>
#include <string_view>

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

void add_commands(CLI::App& app, Action& action, const DescribedCommand& described) {
  add_devices_command(app, action);
  add_operations_command(app, action);
  add_tune_commands(app, action);
  add_kernel_command(app, action, described.of("kernel"));
  add_preset_command(app, action);
  add_capture_command(app, action);
  add_from_capture_command(app, action);
  add_model_command(app, action);
  add_show_command(app, action);
  add_verify_command(app, action, described.of("verify"));
  add_compile_command(app, action, described.of("compile"));
  add_profile_command(app, action, described.of("profile"));
  add_remote_command(app, action);
  add_replay_command(app, action);
  add_prior_command(app, action);
  add_run_case_command(app, action);
  add_diagnose_command(app, action);
  add_inspect_command(app, action);
  add_worker_command(app, action);
}

}  // namespace
}  // namespace greta::tuner::cli

int main(int argc, char** argv) {
  const auto add_commands = [&](CLI::App& app, greta::tuner::cli::Action& action) {
    const std::span<char*> words(argv, static_cast<std::size_t>(argc));
    // Each search starts workers, which need no options of a hundred other commands.
    if (words.size() > 1 && std::string_view(words[1]) == "worker") {
      return greta::tuner::cli::add_worker_command(app, action);
    }
    greta::tuner::cli::add_commands(
        app, action,
        greta::tuner::cli::DescribedCommand(words, {"kernel", "verify", "compile", "profile"}));
  };
  return greta::tuner::cli::run_tool({"greta-tune",
                                      "GRETA finds the fastest correct GPU kernel for an "
                                      "operation, a shape and a device, and stores it.",
                                      greta::tuner::cli::examples, add_commands},
                                     argc, argv);
}
