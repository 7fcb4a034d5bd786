#include "tuner/cli/db/shipped_summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "db/lookup/lookup_files.hpp"
#include "db/tuned_db.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/report/table.hpp"

namespace greta::tuner::cli {
namespace {

ShippedSummary summarise_file(const std::filesystem::path& file) {
  ShippedSummary summary;
  summary.file = file;
  try {
    const TunedDb db = TunedDb::open(file, TunedDb::Mode::read_only);
    for (const auto& device : db.devices()) summary.devices.push_back(device.info);
    const auto results = db.results();
    summary.results = results.size();
    summary.damaged = db.damaged().size();
    for (const auto& result : results) {
      if (result.provenance.started_utc <= summary.newest_utc) continue;
      summary.newest_utc = result.provenance.started_utc;
      summary.greta_version = result.provenance.greta_version;
    }
  } catch (const Error& error) {
    summary = {};
    summary.file = file;
    summary.unreadable = error.what();
  }
  return summary;
}

}  // namespace

std::vector<ShippedSummary> summarise_shipped() {
  const auto folder = folder_of_shipped();
  if (folder.empty()) return {};
  std::vector<ShippedSummary> all;
  try {
    for (const auto& file : shipped_files(folder)) all.push_back(summarise_file(file));
  } catch (const Error& error) {
    ShippedSummary missing;
    missing.file = folder;
    missing.unreadable = error.what();
    all.push_back(std::move(missing));
  }
  return all;
}

nlohmann::json shipped_json(const std::vector<ShippedSummary>& all) {
  auto list = nlohmann::json::array();
  for (const auto& one : all) {
    nlohmann::json object{{"file", one.file.string()},
                          {"level", "shipped"},
                          {"results", one.results},
                          {"damaged", one.damaged},
                          {"newest", one.newest_utc},
                          {"greta_version", one.greta_version},
                          {"devices", nlohmann::json::array()}};
    for (const auto& device : one.devices) {
      object["devices"].push_back({{"backend", to_string(device.backend)},
                                   {"name", device.name},
                                   {"architecture", device.architecture},
                                   {"fingerprint", device.fingerprint()}});
    }
    if (!one.unreadable.empty()) object["unreadable"] = one.unreadable;
    list.push_back(std::move(object));
  }
  return list;
}

std::string shipped_text(const std::vector<ShippedSummary>& all) {
  if (all.empty()) return {};
  using Align = Table::Align;
  Table table(
      {{"shipped with GRETA"}, {"devices"}, {"results", Align::right}, {"newest"}, {"version"}});
  std::string warnings;
  for (const auto& one : all) {
    if (!one.unreadable.empty()) {
      warnings += fmt::format("not used: {}\n", one.unreadable);
      continue;
    }
    std::set<std::string> devices;
    for (const auto& device : one.devices) {
      devices.insert(fmt::format("{} {}", to_string(device.backend), device.name));
    }
    table.add({one.file.string(), fmt::format("{}", fmt::join(devices, ", ")),
               std::to_string(one.results), one.newest_utc.substr(0, 10), one.greta_version});
    if (one.damaged > 0) {
      warnings += fmt::format("{}: {} damaged rows are not used (greta-db verify --db {})\n",
                              one.file.string(), one.damaged, one.file.string());
    }
  }
  return "\n" + table.text() + warnings;
}

}  // namespace greta::tuner::cli
