#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "runtime/device/backend.hpp"
#include "tuner/cli/options/device_options.hpp"
#include "tuner/cli/tune/commands.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

struct Found {
  std::string backend;
  Probe probe;
};

/// Returns "f16 and bf16 16x16x16, f16 32x32x8".
std::string matrix_text(const std::vector<MatrixOperation>& operations) {
  std::vector<std::pair<std::string, std::string>> sizes;  // matrix sizes and their input types
  for (const auto& operation : operations) {
    const auto size = fmt::format("{}x{}x{}", operation.m, operation.n, operation.k);
    if (sizes.empty() || sizes.back().first != size) {
      sizes.emplace_back(size, to_string(operation.input));
    } else {
      sizes.back().second += fmt::format(" and {}", to_string(operation.input));
    }
  }
  std::string text;
  for (const auto& [size, inputs] : sizes) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", inputs, size);
  }
  return text;
}

std::string limits_text(const DeviceInfo& info) {
  const auto waves = info.min_subgroup_size == info.max_subgroup_size
                         ? fmt::format("{}", info.subgroup_size)
                         : fmt::format("{} to {}", info.min_subgroup_size, info.max_subgroup_size);
  std::string text =
      fmt::format("subgroup size {}, {} shared memory and {} threads per workgroup", waves,
                  format_bytes(info.shared_memory_bytes), info.max_workgroup_invocations);
  if (info.compute_units > 0) text += fmt::format(", {} compute units", info.compute_units);
  if (info.unit_registers > 0) text += fmt::format(" of {} registers", info.unit_registers);
  return text;
}

std::string device_rows(const ProbedDevice& device) {
  const DeviceInfo& info = device.info;
  std::string text = format_row(info.id(), info.name);
  const auto add = [&](const std::string& what) { text += format_row("", what); };
  if (!device.usable) {
    add("not usable: " + device.reason);
  } else if (!device.reason.empty()) {
    add(device.reason);
  }
  add(fmt::format("{}, {}{}", to_string(info.kind), info.architecture,
                  info.card.pci_address.empty() ? "" : ", at " + info.card.pci_address));
  add(limits_text(info));
  add(fmt::format("{} memory, {} last-level cache",
                  format_bytes(static_cast<double>(info.memory_bytes)),
                  format_bytes(static_cast<double>(info.last_level_cache_bytes))));
  if (!info.matrix_operations.empty()) {
    add("matrix operations " + matrix_text(info.matrix_operations));
  }
  if (!info.driver.empty()) add("driver " + info.driver);
  if (!info.compiler.empty()) add("compiler " + info.compiler);
  return text;
}

std::string backend_rows(const Found& found) {
  std::string text = found.backend + "\n";
  for (const auto& device : found.probe.devices) text += device_rows(device);
  for (const auto& platform : found.probe.missing) text += format_row("absent", platform);
  if (!found.probe.available && found.probe.missing.empty()) {
    text += format_row("absent", found.probe.reason);
  }
  return text;
}

/// Returns one line for each card that is accessible through several APIs.
std::string card_rows(const std::vector<DeviceInfo>& devices) {
  std::string text;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    std::string ids;
    for (std::size_t j = i + 1; j < devices.size(); ++j) {
      if (same_card(devices[i], devices[j])) ids += " and " + devices[j].id();
    }
    bool told = false;  // whether an earlier device was the same card
    for (std::size_t j = 0; j < i; ++j) told = told || same_card(devices[i], devices[j]);
    if (!ids.empty() && !told) text += fmt::format("{}{} are one card\n", devices[i].id(), ids);
  }
  return text;
}

int list_devices(bool as_json) {
  bool any = false;
  nlohmann::json all = nlohmann::json::array();
  std::string text;
  std::vector<DeviceInfo> devices;
  for (Backend* backend : backends()) {
    const Found found{std::string(to_string(backend->api())), backend->probe()};
    all.push_back(probe_json(found.backend, found.probe));
    text += backend_rows(found);
    for (const auto& device : found.probe.devices) {
      any = any || device.usable;
      devices.push_back(device.info);
    }
  }
  text += "\n" + card_rows(devices);
  if (const auto best = select_device("auto"); best) {
    text += fmt::format("--device auto is {}\n", best->info.id());
  }
  if (as_json) print_json(all);
  if (!as_json) print_text(text);
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

}  // namespace greta::tuner::cli
