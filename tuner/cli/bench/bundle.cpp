#include "tuner/cli/bench/bundle.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <iterator>

#include "runtime/device/backend.hpp"
#include "runtime/device/input_file.hpp"
#include "runtime/device/process.hpp"
#include "runtime/device/utc.hpp"
#include "runtime/device/version.hpp"
#include "tuner/bench/names.hpp"
#include "tuner/bench/printed_result.hpp"
#include "tuner/bundle/machine.hpp"
#include "tuner/cli/paths.hpp"
#include "tuner/cli/tool.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"

namespace greta {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t most_bytes = std::size_t{48} << 20;  // of all files
constexpr std::size_t most_log_bytes = std::size_t{64} << 10;
constexpr int most_failed = 12;  // configurations whose kernels are added
constexpr int most_failed_of_check = 3;

/// The only variables that are read: they change what drivers and compilers do.
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
    R"(What greta-bench doctor --bundle found on a machine. `tar tzf` lists it.

about.txt            GRETA's version, the time, the system, and what doctor ended with
devices.json         every device of every API with all that GRETA reads of it, and why one is not usable
                     (docs/json.md; without UUIDs); "ended" where listing them killed its process
drivers.txt          graphics cards, their kernel drivers, device files, compute nodes, Vulkan's manifests
compilers.txt        compilers of kernels, their versions and paths
environment.txt      the variables that drivers and compilers heed, of a fixed list
health/DEVICE/CHECK.txt    each check: outcome, every configuration that it ran, and the log
failed/DEVICE-CHECK-N/     a configuration that failed
  trial.json         problem, configuration, seed of the inputs, what failed
  log.txt            what the compiler said
  kernel-N.hip, .comp      the sources, complete
  kernel-N.co, .spv        compiled kernels, where there is no case
  case/              compiled kernels with launches and inputs: `greta-tune run-case` runs them again
                     (docs/compile.md)

Names of users, of the machine and of home folders were replaced by USER, HOST and ~.
)";

std::vector<std::string> user_names() {
  std::vector<std::string> names{user_name()};
  for (const char* variable : {"USER", "LOGNAME", "SUDO_USER"}) {
    if (const char* value = std::getenv(variable); value != nullptr) names.emplace_back(value);
  }
  return names;
}

/// The machine's name, with its domain and without.
std::vector<std::string> host_names() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  const std::string whole = name.data();
  return {whole, whole.substr(0, whole.find('.'))};
}

std::string environment_text() {
  std::string text;
  for (const char* variable : variables) {
    const char* value = std::getenv(variable);
    text += value == nullptr ? fmt::format("{} is not set\n", variable)
                             : fmt::format("{}={}\n", variable, value);
  }
  return text;
}

/// Each text of a JSON value without private names; keys are GRETA's own.
void take_out(const PrivateNames& names, Json& json) {
  if (json.is_string()) json = names.without(json.get<std::string>());
  if (json.is_structured()) {
    for (auto& part : json) take_out(names, part);
  }
}

std::string last_bytes(const std::string& text) {
  if (text.size() <= most_log_bytes) return text;
  return fmt::format("({} bytes before this are left out)\n{}", text.size() - most_log_bytes,
                     text.substr(text.size() - most_log_bytes));
}

/// "vulkan:0" as a part of a path.
std::string path_of(const DeviceInfo& device) {
  return fmt::format("{}-{}", device.backend, device.index);
}

/// A folder of its own in the system's place for temporary files, which goes with it.
class WorkFolder {
 public:
  WorkFolder() : path_((fs::temp_directory_path() / "greta-bundle-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) {
      throw CommandError(exit_failed, fmt::format("{}: can't be made", path_));
    }
  }
  ~WorkFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  fs::path path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

Bundle::Bundle(fs::path file, bool yes, std::chrono::seconds deadline)
    : file_(std::move(file)),
      yes_(yes),
      deadline_(std::max(deadline, std::chrono::seconds(60))),
      names_(home_directories(), user_names(), host_names()) {
  if (auto possible = check_archive(file_); !possible) {
    const bool there = possible.failure().status == Status::invalid_argument;
    throw CommandError(there ? exit_usage : exit_failed, "--bundle " + possible.failure().message);
  }
}

void Bundle::leave_out(const std::string& path, const std::string& why) {
  left_out_ += fmt::format("{}: {}\n", path, names_.without(why));
}

void Bundle::add_text(const std::string& path, const std::string& text) {
  files_.push_back({path, names_.without(text)});
  bytes_ += files_.back().contents.size();
}

void Bundle::add_json(const std::string& path, const Json& json) {
  Json without = json;
  take_out(names_, without);
  files_.push_back({path, without.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"});
  bytes_ += files_.back().contents.size();
}

std::string Bundle::probe() {
  std::string died;
  Json all = Json::array();
  for (Backend* const backend : backends()) {
    const std::string name(backend->name());
    const auto ended = run_process({"/proc/self/exe", "probe", name}, {}, deadline_);
    if (!ended) throw Error(ended.failure());
    auto found = Json(printed_result(ended->output, "backend"));
    if (ended->timed_out || ended->signal != 0 || found.empty()) {
      found = {{"backend", name}, {"ended", ended->how_it_ended(deadline_)}};
      died += fmt::format("{}{}: its process {}", died.empty() ? "" : "; ", name,
                          ended->how_it_ended(deadline_));
    }
    found["log"] = last_bytes(ended->errors);
    all.push_back(found);
  }
  add_json("devices.json", all);
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
  add_text(fmt::format("health/{}/{}.txt", path_of(device), health.check), text);
}

void Bundle::add_folder(const std::string& path, const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  for (const auto& file : found) {
    const std::string name = path + "/" + file.lexically_relative(folder).string();
    std::string contents = read_file(file, most_bytes).value();
    const bool code = file.extension() == ".co" || file.extension() == ".spv";
    if (code && names_.in(contents)) {
      leave_out(name, "the compiler put a private name into it");
    } else {
      bytes_ += contents.size();
      files_.push_back({name, std::move(contents)});
    }
  }
}

void Bundle::add_failed(const DeviceInfo& device, const Health& health) {
  int number = 0;
  for (const auto& choice : health.choices) {
    if (!choice.failed()) continue;
    const auto path = fmt::format("failed/{}-{}-{}", path_of(device), health.check, ++number);
    if (number > most_failed_of_check || failed_ == most_failed || bytes_ > most_bytes) {
      leave_out(path, "enough of them are here");
      continue;
    }
    ++failed_;
    const Json trial{{"greta", version()},      {"device", device.id()},
                     {"name", device.name},     {"architecture", device.architecture},
                     {"driver", device.driver}, {"compiler", device.compiler},
                     {"check", health.check},   {"problem", choice.problem},
                     {"config", choice.config}, {"seed", choice.seed},
                     {"status", choice.status}, {"message", choice.message}};
    add_json(path + "/trial.json", trial);
    if (!choice.log.empty()) add_text(path + "/log.txt", last_bytes(choice.log));
    const WorkFolder work;
    const auto ended =
        run_process({"/proc/self/exe", "failed-choice", work.path().string()},
                    Json{{"device", device.id()}, {"trial", trial}}.dump(), deadline_);
    if (!ended) throw Error(ended.failure());
    add_folder(path, work.path());
    if (ended->ok()) continue;
    leave_out(path + "/case", ended->exit_code == exit_failed && !ended->errors.empty()
                                  ? ended->errors.substr(0, ended->errors.find('\n'))
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
  add_text("about.txt", about);
  add_text("drivers.txt", drivers_text());
  add_text("compilers.txt", compilers_text());
  add_text("environment.txt", environment_text());
  for (const auto& [device, checks] : devices) {
    for (const auto& health : checks) add_health(device, health);
  }
  for (const auto& [device, checks] : devices) {
    for (const auto& health : checks) add_failed(device, health);
  }
  std::string readme = what_is_what;
  if (!left_out_.empty()) readme += "\nLeft out:\n" + left_out_;
  add_text("README.txt", readme);
  std::stable_sort(files_.begin(), files_.end(), [](const ArchiveFile& a, const ArchiveFile& b) {
    return std::pair(a.path != "README.txt", a.path) < std::pair(b.path != "README.txt", b.path);
  });
  for (auto& file : files_) file.path = "greta-bundle/" + file.path;
}

void Bundle::write() {
  print("\n{} gets these files:\n", file_.string());
  for (const auto& [path, contents] : files_) {
    print("{:>12}  {}\n", format_bytes(static_cast<double>(contents.size())), path);
  }
  if (!left_out_.empty()) print_text("Left out:\n" + left_out_);
  if (!yes_ && isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0) {
    print_text("Write it? [y/N] ");
    std::fflush(stdout);
    std::string answer;
    std::getline(std::cin, answer);
    if (answer != "y" && answer != "yes") {
      throw CommandError(exit_failed, "--bundle: not written, as it was not wanted");
    }
  }
  if (auto written = write_archive(file_, files_, std::time(nullptr)); !written) {
    throw CommandError(exit_failed, "--bundle " + written.failure().message);
  }
  std::error_code error;
  print("{} written, {}\n", file_.string(),
        format_bytes(static_cast<double>(fs::file_size(file_, error))));
}

}  // namespace greta
