#include <fmt/format.h>

#include <memory>

#include "runtime/device/backend.hpp"
#include "tuner/cli/checks.hpp"
#include "tuner/cli/commands.hpp"
#include "tuner/compile/case_files.hpp"
#include "tuner/compile/run_case.hpp"

namespace greta {
namespace {

struct RunCaseOptions {
  std::vector<std::string> folders;
  std::string device = "auto";
};

/// A device that failed may be lost: the next case gets a fresh one.
class FreshDevice {
 public:
  explicit FreshDevice(std::string wanted) : wanted_(std::move(wanted)) {}

  /// Throws CommandError where it can't be opened.
  Device& get() {
    if (device_) return *device_;
    auto opened = open_device(wanted_, {});
    if (!opened) no_such_device(wanted_, opened.failure());
    device_ = *std::move(opened);
    return *device_;
  }
  void drop() { device_.reset(); }

 private:
  std::string wanted_;
  std::unique_ptr<Device> device_;
};

int run_cases(const RunCaseOptions& options) {
  constexpr Deadline deadline = std::chrono::minutes(1);
  FreshDevice device(options.device);
  device.get();
  int passed = 0, failed = 0, unusable = 0;
  for (const std::string& folder : options.folders) {
    const auto read = read_case(folder);
    if (!read) {
      ++unusable;
      fmt::print("{}: unusable: {}\n", folder, read.failure().message);
      continue;
    }
    const auto wrong = run_case(device.get(), *read, deadline);
    if (wrong && wrong->empty()) {
      ++passed;
      continue;
    }
    if (!wrong && wrong.failure().status == Status::invalid_argument) {
      ++unusable;
      fmt::print("{}: unusable: {}\n", folder, wrong.failure().message);
      continue;
    }
    ++failed;
    fmt::print("{}: {} {} {} [{}]: {}\n", folder, read->op, read->architecture, read->problem,
               read->config, wrong ? *wrong : wrong.failure().message);
    if (!wrong) device.drop();
  }
  fmt::print("{} passed, {} failed, {} unusable\n", passed, failed, unusable);
  return unusable > 0 ? exit_usage : failed > 0 ? exit_failed : exit_done;
}

}  // namespace

void add_run_case_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "run-case", "Run cases that compile --emit-case wrote, and check what their kernels compute");
  auto options = std::make_shared<RunCaseOptions>();
  command->add_option("cases", options->folders, "Folders with a case.json")->required();
  command->add_option("--device", options->device, "auto, an id as hip:0, or a part of a name")
      ->capture_default_str();
  command->callback([&action, options] { action = [options] { return run_cases(*options); }; });
}

}  // namespace greta
