#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "db/json.hpp"
#include "runtime/device/backend.hpp"
#include "tuner/cli/commands.hpp"
#include "tuner/report/format.hpp"

namespace greta {
namespace {

nlohmann::json probe_json(Backend& backend, const Probe& probe) {
  nlohmann::json devices = nlohmann::json::array();
  for (const auto& device : probe.devices) {
    auto object = to_json(device.info);
    object["usable"] = device.usable;
    object["reason"] = device.reason;
    devices.push_back(object);
  }
  return {{"backend", backend.name()},
          {"available", probe.available},
          {"reason", probe.reason},
          {"devices", devices}};
}

std::string device_lines(const ProbedDevice& device) {
  const DeviceInfo& info = device.info;
  std::string text = fmt::format("{:<12} {} ({}, {})\n", info.id(), info.name, to_string(info.kind),
                                 info.architecture);
  text += fmt::format("{:<12} {}; {} memory, {} shared memory, subgroups of {}\n", "", info.driver,
                      format_bytes(static_cast<double>(info.memory_bytes)),
                      format_bytes(info.shared_memory_bytes), info.subgroup_size);
  if (!device.usable) {
    text += fmt::format("{:<12} not usable: {}\n", "", device.reason);
  } else if (!device.reason.empty()) {
    text += fmt::format("{:<12} {}\n", "", device.reason);
  }
  return text;
}

int list_devices(bool as_json) {
  bool any = false;
  nlohmann::json all = nlohmann::json::array();
  std::string text;
  for (Backend* backend : backends()) {
    const Probe probe = backend->probe();
    all.push_back(probe_json(*backend, probe));
    if (!probe.available) text += fmt::format("{:<12} absent: {}\n", backend->name(), probe.reason);
    for (const auto& device : probe.devices) {
      any = any || device.usable;
      text += device_lines(device);
    }
  }
  if (const auto best = select_device("auto"); best) {
    text += fmt::format("\n--device auto is {}\n", best->info.id());
  }
  fmt::print("{}", as_json ? all.dump(2) + "\n" : text);
  if (!any) throw CommandError(exit_no_device, "no device can execute kernels");
  return exit_done;
}

}  // namespace

void add_devices_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("devices", "List the devices, and why one is absent");
  auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "Print JSON");
  command->callback([&action, as_json] { action = [as_json] { return list_devices(*as_json); }; });
}

}  // namespace greta
