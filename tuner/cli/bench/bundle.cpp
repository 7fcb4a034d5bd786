#include "tuner/cli/bench/bundle.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <iterator>

#include "kernels/catalog.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/device/system/process.hpp"
#include "runtime/device/system/temporary_folder.hpp"
#include "runtime/device/system/utc.hpp"
#include "runtime/device/text/strings.hpp"
#include "runtime/device/version.hpp"
#include "tuner/bench/benchmark_names.hpp"
#include "tuner/bundle/machine.hpp"
#include "tuner/cli/program/interrupt.hpp"
#include "tuner/cli/program/machine_names.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/cli/program/tool.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t most_bytes = std::size_t{48} << 20;  // limit for all files
constexpr std::size_t most_log_bytes = std::size_t{64} << 10;
constexpr int most_failed = 12;  // limit for configurations whose kernels are added
constexpr int most_failed_of_check = 3;

/// Environment variables that affect drivers and compilers. No others are read.
constexpr std::array<const char*, 34> variables{"AMD_LOG_LEVEL",
                                                "AMD_SERIALIZE_KERNEL",
                                                "AMD_VULKAN_ICD",
                                                "CUDA_VISIBLE_DEVICES",
                                                "DISABLE_LAYER_AMD_SWITCHABLE_GRAPHICS_1",
                                                "GALLIVM_PERF",
                                                "GPU_DEVICE_ORDINAL",
                                                "GPU_MAX_HW_QUEUES",
                                                "HIP_LAUNCH_BLOCKING",
                                                "HIP_PATH",
                                                "HIP_PLATFORM",
                                                "HIP_VISIBLE_DEVICES",
                                                "HSA_ENABLE_SDMA",
                                                "HSA_OVERRIDE_GFX_VERSION",
                                                "HSA_XNACK",
                                                "LD_LIBRARY_PATH",
                                                "LD_PRELOAD",
                                                "LIBGL_ALWAYS_SOFTWARE",
                                                "LP_NUM_THREADS",
                                                "MESA_SHADER_CACHE_DISABLE",
                                                "MESA_VK_DEVICE_SELECT",
                                                "NODEVICE_SELECT",
                                                "PATH",
                                                "RADV_DEBUG",
                                                "RADV_FORCE_FAMILY",
                                                "RADV_PERFTEST",
                                                "ROCM_PATH",
                                                "ROCR_VISIBLE_DEVICES",
                                                "VK_ADD_DRIVER_FILES",
                                                "VK_DRIVER_FILES",
                                                "VK_ICD_FILENAMES",
                                                "VK_INSTANCE_LAYERS",
                                                "VK_LAYER_PATH",
                                                "VK_LOADER_DRIVERS_SELECT"};

constexpr auto what_is_what =
    R"(The findings of greta-bench doctor --bundle on a machine. `tar tzf` lists it.

about.txt            GRETA's version, the time, the system, and the outcome of doctor
devices.json         every device of every API with all properties that GRETA reads, and why one is not usable
                     (docs/json.md; without UUIDs); "ended" where listing them killed its process
drivers.txt          graphics cards, their kernel drivers, device files, compute nodes, Vulkan's manifests
compilers.txt        compilers of kernels, their versions and paths
environment.txt      the variables that drivers and compilers use, from a fixed list
health/DEVICE/CHECK.txt    each check: outcome, every configuration that it ran, and the log
failed/DEVICE-CHECK-N/     a configuration that failed
  trial.json         problem, configuration, seed of the inputs, failure
  log.txt            the compiler's output
  kernel-N.hip, .comp      the sources, complete
  kernel-N.co, .spv        compiled kernels, where there is no case
  case/              compiled kernels with launches and inputs: `greta-tune run-case` runs them again
                     (docs/compile.md)

Names of users, of the machine and of home folders were replaced by USER, HOST and ~. A name of one
letter, one that is a word of GRETA's ("hip", "gemm"), and every name in a source were replaced where
they can only be names: in a path outside of the system's folders, and beside an @.
)";

std::string environment_text() {
  std::string text;
  for (const char* variable : variables) {
    const char* value = std::getenv(variable);
    text += value == nullptr ? fmt::format("{} is not set\n", variable)
                             : fmt::format("{}={}\n", variable, value);
  }
  return text;
}

std::string last_bytes(const std::string& text) {
  if (text.size() <= most_log_bytes) return text;
  return fmt::format("({} bytes before this are omitted)\n{}", text.size() - most_log_bytes,
                     text.substr(text.size() - most_log_bytes));
}

/// Returns a device id such as "vulkan:0" in a form that paths may contain.
std::string path_of(const DeviceInfo& device) {
  return fmt::format("{}-{}", to_string(device.backend), device.index);
}

}  // namespace

Bundle::Bundle(fs::path file, bool yes, std::chrono::seconds deadline)
    : file_(std::move(file)),
      yes_(yes),
      deadline_(std::max(deadline, std::chrono::seconds(60))),
      files_(names_of_machine(what_is_what), most_bytes) {
  if (auto possible = check_archive(file_); !possible) {
    const bool there = possible.failure().status == Status::invalid_argument;
    throw CommandError(there ? exit_usage : exit_failed, "--bundle " + possible.failure().message);
  }
}

std::string Bundle::probe() {
  std::string died;
  Json all = Json::array();
  for (Backend* const backend : backends()) {
    const std::string name(to_string(backend->api()));
    const auto ended =
        run_process({"/proc/self/exe", "probe", name}, {}, deadline_, &stop_requested());
    if (!ended) throw Error(ended.failure());
    auto found = Json(printed_result(ended->output, "backend"));
    if (ended->killed() || ended->signal != 0 || found.empty()) {
      found = {{"backend", name}, {"ended", ended->how_it_ended(deadline_)}};
      died += fmt::format("{}{}: its process {}", died.empty() ? "" : "; ", name,
                          ended->how_it_ended(deadline_));
    }
    found["log"] = last_bytes(ended->errors);
    all.push_back(found);
  }
  files_.add_json("devices.json", all);
  return died;
}

void Bundle::add_health(const DeviceInfo& device, const Health& health) {
  std::string text = fmt::format("{} of {} {}\n{}\ntook {:.1f} s\n", health.check, device.id(),
                                 device.name, health_text(health), health.seconds);
  if (!health.choices.empty()) text += "\n== Configurations\n";
  for (const auto& choice : health.choices) {
    text += fmt::format("{}: {} | {}\n", choice.status, choice.problem, choice.config);
    if (!choice.message.empty()) text += fmt::format("  {}\n", choice.message);
  }
  if (!health.errors.empty()) text += "\n== Log\n" + last_bytes(health.errors);
  files_.add_text(fmt::format("health/{}/{}.txt", path_of(device), health.check), text);
}

void Bundle::add_failed(const DeviceInfo& device, const Health& health) {
  int number = 0;
  for (const auto& choice : health.choices) {
    if (!choice.failed()) continue;
    const auto path = fmt::format("failed/{}-{}-{}", path_of(device), health.check, ++number);
    if (number > most_failed_of_check || failed_ == most_failed || files_.full()) {
      files_.remark(path, "omitted: the bundle already has enough of them");
      continue;
    }
    ++failed_;
    const Json trial{{"greta", version()},      {"device", device.id()},
                     {"name", device.name},     {"architecture", device.architecture},
                     {"driver", device.driver}, {"compiler", device.compiler},
                     {"check", health.check},   {"problem", choice.problem},
                     {"config", choice.config}, {"seed", choice.seed},
                     {"status", choice.status}, {"message", choice.message}};
    files_.add_json(path + "/trial.json", trial);
    if (!choice.log.empty()) files_.add_text(path + "/log.txt", last_bytes(choice.log));
    const auto work = TemporaryFolder::make("greta-bundle");
    if (!work) throw CommandError(exit_failed, work.failure().message);
    const auto ended = run_process({"/proc/self/exe", "failed-choice", work->path().string()},
                                   Json{{"device", device.id()}, {"trial", trial}}.dump(),
                                   deadline_, &stop_requested());
    if (!ended) throw Error(ended.failure());
    files_.add_folder(path, work->path());
    if (ended->ok()) continue;
    files_.remark(path + "/case", ended->exit_code == exit_failed && !ended->errors.empty()
                                      ? first_line(ended->errors)
                                      : "its process " + ended->how_it_ended(deadline_));
  }
}

void Bundle::add(const std::vector<DeviceHealth>& devices, const std::string& outcome) {
  std::string about =
      fmt::format("GRETA      {}\ntime       {}\n{}", version(), utc_now(), system_text());
  for (const auto& [device, checks] : devices) {
    about += fmt::format("\n{} {}\n", device.id(), device.name);
    for (const auto& health : checks) about += format_row(health.check, health_text(health));
  }
  about += fmt::format("\nended with: {}\n", outcome.empty() ? "everything passed" : outcome);
  files_.add_text("about.txt", about);
  files_.add_text("drivers.txt", drivers_text());
  files_.add_text("compilers.txt", compilers_text());
  files_.add_text("environment.txt", environment_text());
  for (const auto& [device, checks] : devices) {
    for (const auto& health : checks) add_health(device, health);
  }
  for (const auto& [device, checks] : devices) {
    for (const auto& health : checks) add_failed(device, health);
  }
  std::string readme = what_is_what;
  if (!files_.remarks().empty()) readme += "\nOmitted or changed:\n" + files_.remarks();
  files_.add_text("README.txt", readme);
  files_.arrange("greta-bundle");
}

void Bundle::write() {
  print("\n{} gets these files:\n", file_.string());
  for (const auto& [path, contents] : files_.all()) {
    print("{:>12}  {}\n", format_bytes(static_cast<double>(contents.size())), path);
  }
  if (!files_.remarks().empty()) print_text("Omitted or changed:\n" + files_.remarks());
  if (!yes_ && isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0) {
    print_text("Write it? [y/N] ");
    std::fflush(stdout);
    std::string answer;
    std::getline(std::cin, answer);
    if (answer != "y" && answer != "yes") {
      throw CommandError(exit_failed, "--bundle: not written, because it was declined");
    }
  }
  if (auto written = write_archive(file_, files_.all(), std::time(nullptr)); !written) {
    throw CommandError(exit_failed, "--bundle " + written.failure().message);
  }
  std::error_code error;
  print("{} written, {}\n", file_.string(),
        format_bytes(static_cast<double>(fs::file_size(file_, error))));
}

}  // namespace greta::tuner::cli
