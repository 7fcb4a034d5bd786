#include "tuner/cli/options/device_options.hpp"

#include <fmt/format.h>

#include <sstream>

#include "db/json.hpp"
#include "runtime/device/system/sanitizing.hpp"
#include "tuner/cli/program/interrupt.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/cli/program/terminal.hpp"
#include "tuner/tuning/device_selection.hpp"

namespace greta::tuner::cli {

std::vector<std::string> names_of_devices(const std::string& wanted) {
  std::vector<std::string> list;
  std::istringstream names(wanted + ",");
  for (std::string name; std::getline(names, name, ',');) list.push_back(name);
  return list;
}

std::vector<ProbedDevice> select_devices(const std::string& wanted) {
  return value_of(tuner::select_devices(names_of_devices(wanted)));
}

std::vector<ProbedDevice> select_safe_devices(const std::string& wanted,
                                              const std::filesystem::path& file,
                                              bool allow_unsafe) {
  if (allow_unsafe) return select_devices(wanted);
  Terminal terminal;
  return value_of(tuner::select_safe_devices(names_of_devices(wanted), file, terminal));
}

Avoided avoided_on(const DeviceInfo& device, const TunedDb& db, bool allow_unsafe) {
  if (allow_unsafe) return {};
  Terminal terminal;
  return value_of(tuner::avoided_on(device, db, terminal));
}

std::vector<CardLock> lock_cards(const std::vector<ProbedDevice>& devices,
                                 const std::string& tool) {
  Terminal terminal;
  return value_of(tuner::lock_cards(devices, default_cache_directory() / "locks", tool, terminal,
                                    stop_requested()));
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

nlohmann::json probe_json(std::string_view backend, const Probe& probe) {
  nlohmann::json devices = nlohmann::json::array();
  for (const auto& device : probe.devices) {
    auto object = to_json(device.info);
    object["usable"] = device.usable;
    object["reason"] = device.reason;
    devices.push_back(object);
  }
  return {{"backend", backend},
          {"available", probe.available},
          {"reason", probe.reason},
          {"missing", probe.missing},
          {"devices", devices}};
}

}  // namespace greta::tuner::cli
