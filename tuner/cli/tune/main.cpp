#include "tuner/cli/program/paths.hpp"
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

/// The file of `kernel FILE`, `verify FILE` and `compile FILE`, whose options are those that the
/// file describes. The names of operations have neither dots nor slashes.
struct DescribedCommand {
  std::string command;
  DescribedFile description;

  DescribedCommand(int argc, char** argv) {
    if (argc < 3 || argv[2][0] == '-') return;
    const std::string_view word = argv[1], name = argv[2];
    const bool is_file = name.find_first_of("./") != std::string_view::npos;
    const bool takes_file =
        word == "kernel" || (is_file && (word == "verify" || word == "compile"));
    if (!takes_file) return;
    command = word;
    description.word = name;
    description.file = is_file ? description.word : known_by(description.word);
  }
  /// The description of this name in the user's folder, or the name itself.
  static std::string known_by(const std::string& name) {
    std::error_code error;
    for (const char* const ending : {".jsonc", ".json"}) {
      const auto path = folder_of_kernels() / (name + ending);
      if (std::filesystem::exists(path, error)) return path.string();
    }
    return name;
  }
  DescribedFile of(std::string_view word) const {
    return command == word ? description : DescribedFile();
  }
};

void add_commands(CLI::App& app, Action& action, const DescribedCommand& described) {
  add_devices_command(app, action);
  add_operations_command(app, action);
  add_tune_commands(app, action);
  add_kernel_command(app, action, described.of("kernel"));
  add_preset_command(app, action);
  add_from_capture_command(app, action);
  add_model_command(app, action);
  add_show_command(app, action);
  add_verify_command(app, action, described.of("verify"));
  add_compile_command(app, action, described.of("compile"));
  add_replay_command(app, action);
  add_prior_command(app, action);
  add_run_case_command(app, action);
  add_inspect_command(app, action);
  add_worker_command(app, action);
}

}  // namespace
}  // namespace greta::tuner::cli

int main(int argc, char** argv) {
  const greta::tuner::cli::DescribedCommand described(argc, argv);
  const auto add_commands = [&](CLI::App& app, greta::tuner::cli::Action& action) {
    greta::tuner::cli::add_commands(app, action, described);
  };
  return greta::tuner::cli::run_tool({"greta-tune",
                                      "GRETA finds the fastest correct GPU kernel for an "
                                      "operation, a shape and a device, and stores it.",
                                      greta::tuner::cli::examples, add_commands},
                                     argc, argv);
}
