#include "tuner/cli/program/validate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/device/system/input_file.hpp"
#include "runtime/device/system/process.hpp"
#include "runtime/device/system/temporary_folder.hpp"
#include "runtime/device/validation.hpp"
#include "tuner/cli/options/device_options.hpp"
#include "tuner/cli/program/terminal.hpp"
#include "tuner/cli/program/tool.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"
#include "tuner/tuning/device_selection.hpp"
#include "tuner/validate/child.hpp"
#include "tuner/validate/compute_sanitizer.hpp"
#include "tuner/validate/validation_log.hpp"

namespace greta::tuner::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Names the log to the processes of a run.
constexpr const char* log_variable = "GRETA_VALIDATION_LOG";
/// The value of --validate without one: the first of sanitizer_tools.
constexpr std::string_view no_tool = "memcheck";

/// What the parsed command line asks for.
struct Request {
  const std::string* device = nullptr;  ///< nullptr: no --validate
  std::string tool;                     ///< of compute-sanitizer; empty: the default
};

Request& request() {
  static Request instance;
  return instance;
}

/// Returns the words of the command line without --validate, as this process was started.
std::vector<std::string> words_without_validate(const std::vector<std::string>& text_options) {
  constexpr std::uint64_t most_bytes = std::uint64_t{1} << 24;
  std::istringstream in(value_of(device::read_file("/proc/self/cmdline", most_bytes)));
  std::vector<std::string> words;
  bool is_text = false;
  for (std::string word; std::getline(in, word, '\0');) {
    if (is_text || (word != "--validate" && !word.starts_with("--validate=")))
      words.push_back(word);
    is_text =
        !is_text && std::find(text_options.begin(), text_options.end(), word) != text_options.end();
  }
  // The program itself: under another program, /proc/self/exe is that one.
  words.at(0) = fs::read_symlink("/proc/self/exe").string();
  return words;
}

/// The checkers that the devices of a command need.
struct Checkers {
  std::vector<std::string> vulkan, cuda;  ///< ids of devices
  fs::path sanitizer;                     ///< for cuda
};

bool is_cuda(const DeviceInfo& device) {
  return device.backend == Api::hip && device.vendor == "NVIDIA";
}

[[noreturn]] void refuse(const DeviceInfo& device) {
  const std::string instead =
      device.backend == Api::hip_host
          ? "; greta-tune verify --sanitize runs its kernels under sanitizers"
          : "; through Vulkan, the same card has the validation layer";
  throw CommandError(exit_usage,
                     fmt::format("--validate: neither a validation layer nor compute-sanitizer "
                                 "checks {}{}",
                                 device.id(), instead));
}

std::vector<ProbedDevice> devices_of(const std::string& names) {
  if (!names.empty()) return select_devices(names);
  std::vector<ProbedDevice> list;
  for (auto& device : present_devices()) {
    if (device.usable) list.push_back(std::move(device));
  }
  return list;
}

Checkers checkers_of(const Request& wanted) {
  Checkers checkers;
  for (const auto& device : devices_of(*wanted.device)) {
    if (device.info.backend == Api::vulkan) {
      checkers.vulkan.push_back(device.info.id());
    } else if (is_cuda(device.info)) {
      checkers.cuda.push_back(device.info.id());
    } else if (!wanted.device->empty()) {
      refuse(device.info);
    } else {
      tell(fmt::format("validation: nothing checks {}", device.info.id()));
    }
  }
  if (!checkers.vulkan.empty()) {
    if (const auto can = can_validate(); !can) {
      throw CommandError(exit_failed, fmt::format("--validate: {} is not checked: {}",
                                                  checkers.vulkan.front(), can.failure().message));
    }
  }
  if (!wanted.tool.empty() && checkers.cuda.empty()) {
    throw CommandError(exit_usage,
                       fmt::format("--validate={}: is a tool of compute-sanitizer, which checks "
                                   "NVIDIA GPUs through HIP; {} has the validation layer",
                                   wanted.tool, fmt::join(checkers.vulkan, ", ")));
  }
  if (!checkers.cuda.empty()) {
    const char* const path = std::getenv("PATH");
    const auto program = find_compute_sanitizer(path != nullptr ? path : "");
    if (!program) {
      throw CommandError(exit_failed,
                         fmt::format("--validate: {} is not checked: compute-sanitizer is not "
                                     "installed, neither on PATH nor in /usr/local/cuda/bin",
                                     checkers.cuda.front()));
    }
    checkers.sanitizer = *program;
  }
  if (checkers.cuda.empty() && checkers.vulkan.empty()) {
    throw CommandError(exit_no_device, "--validate: there is no device that it can check");
  }
  return checkers;
}

/// Returns a message of Vulkan's layer without its list of objects, and the first line of others.
std::string shortened(const std::string& text) {
  const std::string line = text.substr(0, text.find('\n'));
  const auto id = line.find("| MessageID = ");
  const auto end = id == std::string::npos ? id : line.find(" | ", id);
  return end == std::string::npos ? line : line.substr(end + 3);
}

/// Prints what a checker found.
void tell_findings(const std::string& checker, const Findings& findings, const std::string& runs) {
  tell(fmt::format("validation: {}: {}, {} {}", checker,
                   format_count(static_cast<std::int64_t>(findings.errors()), "error"),
                   format_count(static_cast<std::int64_t>(findings.warnings()), "warning"), runs));
  for (const CheckerMessage& finding : findings.list()) {
    const std::string text = shortened(finding.first);
    print(stderr, "  {}× {}{}{}\n", finding.count, finding.error ? "" : "warning ", finding.kind,
          text == finding.kind ? "" : ": " + text);
  }
}

/// What the checkers of a run found.
struct Checked {
  std::uint64_t errors = 0;
  bool unchecked = false;  ///< a checker did not run
  Json json = Json::object();
};

void judge_vulkan(const fs::path& file, bool needed, Checked& checked) {
  const auto log = value_of(read_validation_log(file));
  std::size_t times = 0;
  Json opened = Json::object();
  for (const auto& [device, count] : log.opened) times += count, opened[device] = count;
  tell_findings(
      "VK_LAYER_KHRONOS_validation", log.findings,
      fmt::format("in {} process{}, which opened {}", log.processes, log.processes == 1 ? "" : "es",
                  format_count(static_cast<std::int64_t>(times), "device")));
  checked.errors += log.findings.errors();
  checked.unchecked = checked.unchecked || (needed && log.processes == 0);
  checked.json["vulkan"] = to_json(log.findings);
  checked.json["vulkan"]["processes"] = log.processes;
  checked.json["vulkan"]["opened"] = opened;
}

void judge_cuda(const fs::path& folder, const std::string& tool, Checked& checked) {
  const auto reports = value_of(read_sanitizer_reports(folder));
  const auto runs = static_cast<std::int64_t>(reports.files);
  tell_findings("compute-sanitizer " + tool, reports.findings,
                "in " + format_count(runs, "report"));
  checked.errors += reports.findings.errors();
  checked.unchecked = checked.unchecked || reports.files == 0;
  checked.json["compute_sanitizer"] = to_json(reports.findings);
  checked.json["compute_sanitizer"]["tool"] = tool;
  checked.json["compute_sanitizer"]["reports"] = reports.files;
}

/// Prints the child's object with what was found. Text before it goes to standard error; output
/// without an object is printed as it is, and what was found as an object after it.
void print_with(const std::string& output, const Checked& checked) {
  for (std::size_t start = 0; start < output.size();) {
    auto document = output[start] == '{'
                        ? Json::parse(output.begin() + static_cast<std::ptrdiff_t>(start),
                                      output.end(), nullptr, false)
                        : Json();
    if (document.is_object()) {
      print_text(stderr, output.substr(0, start));
      document["validation"] = checked.json;
      return print_json(document);
    }
    const auto end = output.find('\n', start);
    start = end == std::string::npos ? output.size() : end + 1;
  }
  print_text(output);
  print_json(Json{{"validation", checked.json}});
}

}  // namespace

void add_validate_option(CLI::App& command, const std::string& device) {
  const auto value = std::make_shared<std::string>();
  command
      .add_flag(fmt::format("--validate{{{}}}", no_tool), *value,
                "Run with Vulkan's validation layer or, on NVIDIA GPUs through HIP, under "
                "compute-sanitizer, and count what they report; =racecheck, =initcheck or "
                "=synccheck selects another tool than memcheck")
      ->each([&device, value](const std::string& tool) {
        request() = {&device, tool == no_tool ? "" : tool};
      })
      ->group("Development");
}

bool wants_validation() {
  return request().device != nullptr;
}

int run_validated(const std::vector<std::string>& text_options) {
  const Request& wanted = request();
  if (!wanted.tool.empty() && std::find(sanitizer_tools.begin(), sanitizer_tools.end(),
                                        wanted.tool) == sanitizer_tools.end()) {
    throw CommandError(exit_usage, fmt::format("--validate {}: must be one of {}", wanted.tool,
                                               fmt::join(sanitizer_tools, ", ")));
  }
  const Checkers checkers = checkers_of(wanted);
  const auto folder = value_of(device::TemporaryFolder::make("greta-validate"));
  const fs::path log = folder.path() / "vulkan";
  if (!std::ofstream(log)) throw CommandError(exit_failed, log.string() + ": can't be written");
  auto command = words_without_validate(text_options);
  const auto has = [&](std::string_view word) {
    return std::find(command.begin(), command.end(), word) != command.end();
  };
  const bool lines = has("--json-lines"), json = has("--json") && !lines;
  const std::string sanitizer(wanted.tool.empty() ? sanitizer_tools.front() : wanted.tool);
  if (!checkers.cuda.empty()) {
    command = sanitizer_command(checkers.sanitizer, sanitizer, folder.path(), command);
  }
  const auto ended = value_of(
      run_child(command, {{log_variable, checkers.vulkan.empty() ? "" : log.string()}}, json));
  if (ended.exit_code == exit_usage) return ended.exit_code;  // nothing ran
  Checked checked;
  if (!checkers.vulkan.empty()) judge_vulkan(log, ended.exit_code == exit_done, checked);
  if (!checkers.cuda.empty()) judge_cuda(folder.path(), sanitizer, checked);
  if (json) print_with(ended.output, checked);
  if (lines) print_json(Json{{"event", "validation"}, {"validation", checked.json}}, -1);
  if (ended.signal != 0) {
    throw CommandError(exit_failed,
                       "the checked process was killed by " + device::signal_text(ended.signal));
  }
  if (ended.exit_code != exit_done) return ended.exit_code;
  if (checked.unchecked) throw CommandError(exit_failed, "--validate: nothing was checked");
  return checked.errors > 0 ? exit_failed : exit_done;
}

void validate_if_asked() {
  const char* const log = std::getenv(log_variable);
  if (log != nullptr && *log != '\0') write_validation_log(log).value();
}

}  // namespace greta::tuner::cli
