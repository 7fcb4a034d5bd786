#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "runtime/device/backend.hpp"
#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/program/terminal.hpp"
#include "tuner/cli/program/validate.hpp"
#include "tuner/cli/tune/commands.hpp"
#include "tuner/compile/case_files.hpp"
#include "tuner/compile/run_case.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

struct RunCaseOptions {
  std::vector<std::string> folders;
  std::string device;  ///< empty: one of the case's architecture
};

/// The open device of a name. It is reopened after a failure, since it may be lost.
class FreshDevice {
 public:
  /// Throws CommandError if it can't be opened.
  Device& get(const std::string& wanted) {
    if (device_ && wanted_ == wanted) return *device_;
    auto opened = open_device(wanted, {});
    if (!opened) throw command_error(bad_field("device", wanted, opened.failure().message));
    device_ = *std::move(opened);
    wanted_ = wanted;
    return *device_;
  }
  void drop() { device_.reset(); }

 private:
  std::string wanted_;
  std::unique_ptr<Device> device_;
};

/// Returns the first device that can run a case's code objects and has its architecture.
Result<std::string> device_of(const KernelCase& run) {
  std::vector<std::string> there;
  for (Backend* const backend : backends()) {
    for (const auto& device : backend->probe().devices) {
      const DeviceInfo& info = device.info;
      if (!device.usable || info.language != run.language) continue;
      if (info.architecture == run.architecture) return info.id();
      there.push_back(fmt::format("{} is {}", info.id(), info.architecture));
    }
  }
  return Failure{Status::invalid_argument,
                 fmt::format("compiled for {}, and no device here is one: {}", run.architecture,
                             there.empty() ? "none runs code objects"
                                           : fmt::format("{}", fmt::join(there, ", "))),
                 {}};
}

int run_cases(const RunCaseOptions& options) {
  constexpr Deadline deadline = std::chrono::minutes(1);
  FreshDevice device;
  if (!options.device.empty()) device.get(options.device);
  int passed = 0, failed = 0, unusable = 0;
  for (const std::string& folder : options.folders) {
    const auto cannot = [&](const Failure& why) {
      ++unusable;
      print("{}: unusable: {}\n", folder, why.message);
    };
    const auto read = read_case(folder);
    if (!read) {
      cannot(read.failure());
      continue;
    }
    const auto name =
        options.device.empty() ? device_of(*read) : Result<std::string>(options.device);
    if (!name) {
      cannot(name.failure());
      continue;
    }
    const auto wrong = run_case(device.get(*name), *read, deadline);
    if (wrong && wrong->empty()) {
      ++passed;
      continue;
    }
    if (!wrong && wrong.failure().status == Status::invalid_argument) {
      cannot(wrong.failure());
      continue;
    }
    ++failed;
    print("{}: {} {} {} [{}]: {}\n", folder, read->op, read->architecture, read->problem,
          read->config, wrong ? *wrong : wrong.failure().message);
    if (!wrong) device.drop();
  }
  print("{} passed, {} failed, {} unusable\n", passed, failed, unusable);
  return unusable > 0 ? exit_usage : failed > 0 ? exit_failed : exit_done;
}

}  // namespace

void add_run_case_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "run-case", "Run cases that compile --emit-case wrote, and check what their kernels compute");
  auto options = std::make_shared<RunCaseOptions>();
  command->add_option("cases", options->folders, "Folders with a case.json")->required();
  command->add_option(
      "--device", options->device,
      "An id as hip:0, or a part of a name; default: one of a case's architecture. SPIR-V "
      "runs on any Vulkan device that is named");
  add_validate_option(*command, options->device);
  command->callback([&action, options] { action = [options] { return run_cases(*options); }; });
}

}  // namespace greta::tuner::cli
