#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <span>

#include "runtime/device/system/input_file.hpp"
#include "tuner/cli/tune/commands.hpp"
#include "tuner/compile/compile_report.hpp"
#include "tuner/compile/kernel_loops.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

struct InspectOptions {
  std::vector<std::string> files;
  bool json = false;
};

int inspect(const InspectOptions& options) {
  constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;
  nlohmann::json list = nlohmann::json::array();
  for (const std::string& file : options.files) {
    const auto bytes = read_file(file, most_bytes);
    if (!bytes) throw CommandError(exit_usage, bytes.failure().message);
    const auto contents = examine_code_object(std::as_bytes(std::span(*bytes)), {});
    if (!contents) {
      throw CommandError(exit_usage, fmt::format("{}: {}", file, contents.failure().message));
    }
    if (options.json) {
      list.push_back(code_object_json(file, *contents));
    } else {
      print_text(code_object_text(file, *contents));
    }
  }
  if (options.json) print_json(nlohmann::json{{"code_objects", std::move(list)}});
  return exit_done;
}

}  // namespace

void add_inspect_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "inspect", "Report the resources and the main loops of kernels in AMD code objects");
  auto options = std::make_shared<InspectOptions>();
  command->add_option("files", options->files, "Code objects, by whatever compiler")->required();
  command->add_flag("--json", options->json, "Print one JSON object (docs/json.md)");
  command->callback([&action, options] { action = [options] { return inspect(*options); }; });
}

}  // namespace greta::tuner::cli
