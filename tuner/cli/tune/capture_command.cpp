#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "runtime/device/system/module_paths.hpp"
#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/program/gemm_logs.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/cli/tune/commands.hpp"

namespace greta::tuner::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* library_name = "libgreta-capture.so";

struct CaptureOptions {
  fs::path output = "greta-gemms.jsonl";
  double interval_s = 10;
  bool quiet = false, no_times = false;
};

/// Returns libgreta-capture.so of this installation, or of the folder in which GRETA was built.
fs::path capture_library() {
  const fs::path folder = program_file().parent_path().parent_path() / "lib/greta/preload";
  std::error_code ignored;
  if (!fs::is_regular_file(folder / library_name, ignored)) {
    throw CommandError(exit_failed, fmt::format("no {} in {}", library_name, folder.string()));
  }
  return folder / library_name;
}

void set(const char* name, const std::string& value) {
  if (setenv(name, value.c_str(), 1) != 0) throw CommandError(exit_failed, std::strerror(errno));
}

/// Becomes the program, which loads the library first.
int run_captured(const CaptureOptions& options, const std::vector<std::string>& words) {
  if (words.empty()) throw CommandError(exit_usage, "capture: needs a program to run");
  std::error_code ignored;
  if (!fs::is_directory(options.output, ignored)) {
    check_new_file("--output", options.output);
    check_folder("--output", options.output);
  }
  const std::string library = capture_library().string();
  const char* const before = std::getenv("LD_PRELOAD");
  const bool alone = before == nullptr || *before == '\0';
  set("LD_PRELOAD", alone ? library : library + ":" + before);
  set("GRETA_CAPTURE", fs::absolute(options.output).string());
  set("GRETA_CAPTURE_INTERVAL", fmt::format("{}", options.interval_s));
  if (options.quiet) set("GRETA_CAPTURE_QUIET", "1");
  if (options.no_times) set("GRETA_CAPTURE_TIMES", "0");
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  throw CommandError(exit_usage, fmt::format("{}: {}", words[0], std::strerror(errno)));
}

}  // namespace

void add_capture_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "capture",
      "Run a program and record the GEMMs that it asks of cuBLAS, cuBLASLt, rocBLAS, hipBLAS and "
      "hipBLASLt, for from-capture; the program and its arguments follow the options");
  auto options = std::make_shared<CaptureOptions>();
  command
      ->add_option("--output", options->output,
                   "The capture, a new file or a folder; other processes than the first one put "
                   "their numbers into the name")
      ->type_name("FILE")
      ->capture_default_str();
  command
      ->add_option("--interval", options->interval_s,
                   "At most this time passes until the file has what was called")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.001, 86400.0))
      ->capture_default_str();
  command->add_flag("--quiet", options->quiet, "Do not print at the end where the calls are");
  command->add_flag("--no-times", options->no_times, "Do not time calls on the device");
  command->prefix_command();
  command->footer(
      "Examples:\n  greta-tune capture --output gemms.jsonl python3 model.py\n"
      "  greta-tune from-capture gemms.jsonl");
  command->callback([&action, options, command] {
    action = [options, words = command->remaining()] { return run_captured(*options, words); };
  });
}

}  // namespace greta::tuner::cli
