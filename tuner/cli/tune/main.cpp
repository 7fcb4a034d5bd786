#include <span>
#include <string_view>

#include "kernels/catalog.hpp"
#include "tuner/cli/program/known_operations.hpp"
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

/// The file of `kernel FILE`, `verify FILE`, `compile FILE` and `profile FILE`, whose options are
/// those that the file describes. The names of operations have neither dots nor slashes.
struct DescribedCommand {
  std::string command;
  DescribedFile description;

  /// Adds the folders of --kernels, as a name is looked for there before options are parsed.
  explicit DescribedCommand(std::span<char*> words) {
    if (words.size() < 2) return;
    const std::string_view word = words[1];
    if (word != "kernel" && word != "verify" && word != "compile" && word != "profile") return;
    std::string name;
    for (std::size_t i = 2; i < words.size(); ++i) {
      const std::string_view option = words[i];
      constexpr std::string_view kernels = "--kernels";
      if (option == kernels && i + 1 < words.size()) {
        add_kernel_folder(words[++i]);
      } else if (option.starts_with("--kernels=")) {
        add_kernel_folder(option.substr(kernels.size() + 1));
      } else if (name.empty()) {
        if (option.starts_with('-')) return;
        name = option;
      }
    }
    set(word, name);
  }
  void set(std::string_view word, const std::string& name) {
    const bool is_file = name.find_first_of("./") != std::string::npos;
    const bool is_own = Catalog::built_in().find(name) != nullptr;
    std::string file = is_file ? name : is_own ? "" : described_as(name).string();
    if (file.empty() && word == "kernel") file = name;
    if (file.empty()) return;
    command = word;
    description = {name, file};
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
    greta::tuner::cli::add_commands(app, action, greta::tuner::cli::DescribedCommand(words));
  };
  return greta::tuner::cli::run_tool({"greta-tune",
                                      "GRETA finds the fastest correct GPU kernel for an "
                                      "operation, a shape and a device, and stores it.",
                                      greta::tuner::cli::examples, add_commands},
                                     argc, argv);
}
