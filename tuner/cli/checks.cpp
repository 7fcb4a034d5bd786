#include "tuner/cli/checks.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "runtime/device/input_file.hpp"
#include "runtime/device/sanitizing.hpp"
#include "tuner/cli/tool.hpp"
#include "tuner/report/csv.hpp"
#include "tuner/report/format.hpp"
#include "tuner/search/strategy.hpp"

namespace greta::tuner::cli {
namespace {

double available_host_bytes() {
  std::istringstream in(read_system_file("/proc/meminfo"));
  std::string name;
  double kilobytes = 0;
  for (std::string unit; in >> name >> kilobytes; std::getline(in, unit)) {
    if (name == "MemAvailable:") return kilobytes * 1024;
  }
  return 0;
}

}  // namespace

Budget read_budget(const std::string& text) {
  auto budget = Budget::parse(text);
  if (!budget) throw CommandError(exit_usage, budget.failure().message);
  return *std::move(budget);
}

std::uint64_t read_flush(const std::string& text) {
  if (text.empty()) return 0;
  std::size_t end = 0;
  double mebibytes = 0;
  try {
    mebibytes = std::stod(text, &end);
  } catch (const std::exception&) {
    end = 0;
  }
  if (end != text.size() || !(mebibytes >= 1) || mebibytes > 65536) {
    throw CommandError(exit_usage,
                       fmt::format("--flush {}: must be MiB between 1 and 65536", text));
  }
  return static_cast<std::uint64_t>(mebibytes * 1024 * 1024);
}

std::string names_of_strategies() {
  std::string names;
  for (const auto& entry : strategies())
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  return names;
}

void check_strategy(const std::string& name) {
  if (find_strategy(name) != nullptr) return;
  throw CommandError(exit_usage,
                     fmt::format("--strategy {}: must be one of {}", name, names_of_strategies()));
}

void no_such_device(const std::string& wanted, const Failure& failure) {
  for (Backend* backend : backends()) {
    for (const auto& device : backend->probe().devices) {
      if (device.usable) {
        throw CommandError(exit_usage, fmt::format("--device {}: {}", wanted, failure.message));
      }
    }
  }
  throw CommandError(exit_no_device, failure.message);
}

std::vector<ProbedDevice> select_devices(const std::string& wanted) {
  std::vector<ProbedDevice> devices;
  std::istringstream names(wanted + ",");
  for (std::string name; std::getline(names, name, ',');) {
    auto device = select_device(name);
    if (!device) no_such_device(name, device.failure());
    const bool again = std::any_of(devices.begin(), devices.end(), [&](const ProbedDevice& other) {
      return other.info.id() == device->info.id();
    });
    if (again) {
      throw CommandError(exit_usage,
                         fmt::format("--device {}: {} is named twice", wanted, device->info.id()));
    }
    devices.push_back(*std::move(device));
  }
  return devices;
}

void check_sanitizes(const ProbedDevice& device) {
  if (!device.sanitizes) {
    throw CommandError(exit_usage,
                       fmt::format("--sanitize: not on {}; the devices of hip-host run kernels "
                                   "under sanitizers",
                                   device.info.id()));
  }
  if (const auto variables = sanitizer_environment({}); !variables) {
    throw CommandError(exit_usage, "--sanitize: " + variables.failure().message);
  }
}

void check_csv(const std::string& option, const std::filesystem::path& file) {
  if (file.empty()) return;
  const auto refuse = [&](std::string_view why) {
    throw CommandError(exit_usage, fmt::format("{} {}: {}", option, file.string(), why));
  };
  if (std::filesystem::exists(file)) {
    const auto text = read_file(file, most_csv_bytes);
    if (!text) throw CommandError(exit_usage, fmt::format("{} {}", option, text.failure().message));
    if (!text->empty() && !text->starts_with(csv_header())) refuse("exists and has other columns");
    if (access(file.c_str(), W_OK) != 0) refuse("can't be written");
    return;
  }
  auto folder = std::filesystem::absolute(file).parent_path();
  while (!std::filesystem::exists(folder)) folder = folder.parent_path();  // others are created
  if (!std::filesystem::is_directory(folder)) refuse(folder.string() + " is not a folder");
  if (access(folder.c_str(), W_OK) != 0) refuse("can't be written");
}

std::vector<Config> read_configs(const Operation& operation, const Problem& problem,
                                 const DeviceInfo& device, const std::vector<std::string>& texts) {
  std::vector<Config> configs;
  if (texts.empty()) return configs;
  const Space space = operation.space(problem, device);
  for (const auto& text : texts) {
    std::istringstream words(text);  // a report may have wrapped it
    std::string joined;
    for (std::string word; words >> word;) joined += (joined.empty() ? "" : " ") + word;
    auto config = space.parse(joined);
    if (!config) {
      throw CommandError(exit_usage, "--try: " + config.failure().message);
    }
    configs.push_back(*std::move(config));
  }
  return configs;
}

void check_fits(const Operation& operation, const Problem& problem, const DeviceInfo& device,
                const std::string& where, ResultsFor use) {
  double operands = 0;
  double largest = 0;
  double host = 0;
  for (const auto& spec : operation.tensors(problem)) {
    const double bytes =
        (static_cast<double>(spec.rows - 1) * static_cast<double>(spec.row_stride()) +
         static_cast<double>(spec.cols)) *
        static_cast<double>(size_of(spec.dtype));
    operands += bytes;
    largest = std::max(largest, bytes);
    // Drawn as it is and converted for the reference; outputs are brought back.
    host += bytes + 20.0 * static_cast<double>(spec.elements());
    // An expected number and its bound for every element of memory, once more as they are found.
    const bool written = use == ResultsFor::a_case && spec.role != Role::input;
    if (written) host += 32.0 * bytes / static_cast<double>(size_of(spec.dtype));
  }
  const auto memory = static_cast<double>(device.memory_bytes);
  const auto allocation = static_cast<double>(device.max_allocation_bytes);
  const auto refuse = [&](double needed, const std::string& limit, double there) {
    throw CommandError(
        exit_usage, fmt::format("{}{}: needs {}, {} {}", where.empty() ? "" : where + ": ",
                                problem.key(), format_bytes(needed), limit, format_bytes(there)));
  };
  if (operands > memory) refuse(operands, device.id() + " has", memory);
  if (allocation > 0 && largest > allocation) {
    refuse(largest, "for one operand, where the largest allocation on " + device.id() + " is",
           allocation);
  }
  const double needed = host + (device.unified_memory || device.is_cpu() ? operands : 0);
  const double available = available_host_bytes();
  if (available > 0 && needed > available) {
    refuse(needed, "of host memory to verify results, where free are", available);
  }
}

}  // namespace greta::tuner::cli
