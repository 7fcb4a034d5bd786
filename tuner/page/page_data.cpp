#include "tuner/page/page_data.hpp"

#include <cmath>

#include "db/hardware.hpp"
#include "runtime/device/version.hpp"
#include "tuner/page/page_parts.hpp"

namespace greta::tuner {
namespace {

nlohmann::json files_json(const PageInput& input) {
  nlohmann::json files = nlohmann::json::array();
  for (const auto& one : input.databases)
    files.push_back(
        {{"name", one.name}, {"kind", "database"}, {"damaged", one.db->damaged().size()}});
  for (const auto& one : input.recordings)
    files.push_back({{"name", one.name}, {"kind", "recording"}});
  for (const auto& one : input.baselines)
    files.push_back({{"name", one.name}, {"kind", "baselines"}});
  for (const auto& one : input.traces) files.push_back({{"name", one.name}, {"kind", "trace"}});
  return files;
}

/// Sets each search's result: the first one of its session, and the current one of a recording's
/// problem.
void link_searches(nlohmann::json& searches, const nlohmann::json& results) {
  for (auto& search : searches) {
    for (std::size_t i = 0; search["recorded"] && i < results.size(); ++i) {
      const auto& result = results[i];
      if (search["result"].is_null() && result["current"] && result["cold"] == search["cold"] &&
          result["device"] == search["device"] && result["problem"] == search["problem"])
        search["result"] = i;
    }
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& search = results[i]["search"];
    if (search.is_null()) continue;
    auto& result = searches[search.get<std::size_t>()]["result"];
    if (result.is_null()) result = i;
  }
}

}  // namespace

nlohmann::json known(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

ValueWords value_words(const Problem& problem, const DeviceInfo& device, const Config& config,
                       const Catalog& catalog) {
  const auto usable = catalog.usable(problem, device, config);
  const bool known = usable && usable->changes.empty() && usable->config.words != nullptr;
  return known ? *usable->config.words : ValueWords();
}

nlohmann::json spread_json(const Spread& spread) {
  return {{"count", spread.count}, {"geometric_mean", spread.geometric_mean},
          {"least", spread.least}, {"quarter", spread.quarter},
          {"half", spread.half},   {"three_quarters", spread.three_quarters},
          {"most", spread.most}};
}

PageDevices::PageDevices(const PageInput& input) : databases_(input.databases) {
  const auto add = [&](const StoredDevice& device) {
    stored_.push_back(device);
    if (indices_.emplace(device.info.fingerprint(), devices_.size()).second)
      devices_.push_back(device.info);
  };
  for (const auto& one : input.databases)
    for (const auto& device : one.db->devices()) add(device);
  for (const auto& one : input.recordings)
    add({.info = one.recording->subject()->device, .first_seen_utc = {}, .last_seen_utc = {}});
}

nlohmann::json PageDevices::json() const {
  nlohmann::json list = nlohmann::json::array();
  const HardwareGroups groups(stored_);
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const DeviceInfo& device = devices_[i];
    std::size_t hardware = 0;
    while (hardware < i && !groups.same(devices_[hardware], device)) ++hardware;
    nlohmann::json ceilings = nlohmann::json::object();
    std::string measured;
    for (const auto& one : databases_) {
      for (const auto& ceiling : one.db->ceilings(device.fingerprint())) {
        if (ceiling.measured_utc < measured && ceilings.contains(ceiling.kind)) continue;
        ceilings[ceiling.kind] = known(ceiling.value);
        measured = std::max(measured, ceiling.measured_utc);
      }
    }
    list.push_back({{"name", device.name},
                    {"id", device.id()},
                    {"backend", to_string(device.backend)},
                    {"vendor", device.vendor},
                    {"architecture", device.architecture},
                    {"driver", device.driver},
                    {"compiler", device.compiler},
                    {"kind", to_string(device.kind)},
                    {"fingerprint", device.fingerprint()},
                    {"units", device.compute_units},
                    {"memory_bytes", device.memory_bytes},
                    {"hardware", hardware},
                    {"ceilings", ceilings},
                    {"ceilings_utc", measured}});
  }
  return list;
}

nlohmann::json page_data(const PageInput& input, const Catalog& catalog) {
  const PageDevices devices(input);
  const auto results = page_results(input.databases, devices, catalog);
  SearchPlaces places;
  auto searches = search_data(input, devices, catalog, places);
  auto result_list = result_data(results, places, input, catalog);
  link_searches(searches, result_list);
  auto device_list = devices.json();
  for (std::size_t i = 0; i < device_list.size(); ++i)
    device_list[i]["summary"] = summary_data(results, i);
  return {
      {"format", "greta-report 1"},
      {"made", {{"greta_version", version()}, {"utc", input.utc}, {"files", files_json(input)}}},
      {"devices", std::move(device_list)},
      {"rivals", rival_data(results, input, devices)},
      {"results", std::move(result_list)},
      {"searches", std::move(searches)},
      {"lookups", lookup_data(results, input, devices, catalog)},
      {"next", next_data(results, input, catalog)},
      {"baselines", baseline_data(input.baselines)},
      {"passes", pass_data(input.traces)}};
}

}  // namespace greta::tuner
