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

void add_commands(CLI::App& app, Action& action, const std::string& description) {
  add_devices_command(app, action);
  add_operations_command(app, action);
  add_tune_commands(app, action);
  add_kernel_command(app, action, description);
  add_preset_command(app, action);
  add_from_capture_command(app, action);
  add_model_command(app, action);
  add_show_command(app, action);
  add_verify_command(app, action);
  add_compile_command(app, action);
  add_replay_command(app, action);
  add_prior_command(app, action);
  add_run_case_command(app, action);
  add_inspect_command(app, action);
  add_worker_command(app, action);
}

}  // namespace
}  // namespace greta::tuner::cli

int main(int argc, char** argv) {
  // The options of `kernel FILE` are those that the file describes.
  const bool described = argc > 2 && std::string_view(argv[1]) == "kernel" && argv[2][0] != '-';
  const std::string description = described ? argv[2] : "";
  const auto add_commands = [&](CLI::App& app, greta::tuner::cli::Action& action) {
    greta::tuner::cli::add_commands(app, action, description);
  };
  return greta::tuner::cli::run_tool({"greta-tune",
                                      "GRETA finds the fastest correct GPU kernel for an "
                                      "operation, a shape and a device, and stores it.",
                                      greta::tuner::cli::examples, add_commands},
                                     argc, argv);
}
