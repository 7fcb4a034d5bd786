#include "tuner/cli/db/list_counters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "db/json.hpp"
#include "tuner/cli/program/damage_report.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/program/tool.hpp"
#include "tuner/measure/ceilings.hpp"
#include "tuner/profile/limiter.hpp"
#include "tuner/profile/profile_report.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"
#include "tuner/report/report.hpp"
#include "tuner/report/table.hpp"

namespace greta::tuner::cli {
namespace {

/// The figures with a column each.
constexpr std::string_view columns[] = {
    figure_memory_read, figure_memory_write,     "l2_hit_share",  figure_matrix_share,
    figure_fma_share,   figure_shared_conflicts, figure_occupancy};

const Figure& figure_of(std::string_view name) {
  return *std::find_if(figures().begin(), figures().end(),
                       [&](const Figure& figure) { return figure.name == name; });
}

/// Returns what limited the configuration, by today's peaks of its device.
std::string limiter_of(const TunedDb& db, const StoredCounters& stored) {
  const auto problem = Problem::parse(stored.problem);
  if (!problem) return {};
  const auto ceilings = db.ceilings(stored.device);
  Profile profile;
  profile.cold = stored.counters.cold;
  profile.work = work_of(known_operations(), *problem);
  profile.copy_gbps = ceiling(ceilings, ceiling_copy);
  profile.arithmetic_gflops = arithmetic_gflops(problem->dtype, ceilings);
  profile.roofline_us = roofline_us(problem->dtype, profile.work, ceilings);
  ProfiledWay way{.name = {}, .config = stored.config};
  way.us = {stored.us, stored.us, stored.us};
  way.counters = stored.counters;
  return limiter(profile, way);
}

nlohmann::json counters_object(const StoredCounters& stored, const std::string& limit) {
  return {{"problem", stored.problem},
          {"device", stored.device_name},
          {"device_fingerprint", stored.device},
          {"driver", stored.driver},
          {"date", stored.recorded_utc},
          {"config", to_json(stored.config)},
          {"config_text", stored.config.shown()},
          {"us", json_number(stored.us)},
          {"counters", to_json(stored.counters)},
          {"limiter", limit}};
}

std::vector<std::string> cells_of(const StoredCounters& stored, const std::string& limit) {
  std::vector<std::string> cells{stored.problem + (stored.counters.cold ? "" : " (warm)"),
                                 stored.device_name, stored.config.shown(),
                                 stored.us > 0 ? format_time(stored.us) : std::string()};
  for (const std::string_view name : columns) {
    const auto value = stored.counters.figure(name);
    cells.push_back(value ? figure_text(figure_of(name), *value) : std::string());
  }
  cells.push_back(limit);
  cells.push_back(stored.counters.source);
  cells.push_back(stored.recorded_utc.substr(0, 10));
  return cells;
}

}  // namespace

int list_counters(const TunedDb& db, const ResultFilter& filter, bool as_json) {
  std::map<std::string, DeviceInfo> devices;
  for (const StoredDevice& device : db.devices()) {
    devices.emplace(device.info.fingerprint(), device.info);
  }
  std::vector<Table::Column> titles{
      {"problem"}, {"device"}, {"configuration"}, {"time", Table::Align::right}};
  for (const std::string_view name : columns) {
    titles.push_back({std::string(figure_of(name).label), Table::Align::right});
  }
  for (const char* title : {"limit", "source", "date"}) titles.push_back({title});
  Table table(titles);
  auto objects = nlohmann::json::array();
  for (const StoredCounters& stored : db.counters()) {
    const auto device = devices.find(stored.device);
    if (!filter.matches(stored, device == devices.end() ? nullptr : &device->second)) continue;
    const std::string limit = limiter_of(db, stored);
    objects.push_back(counters_object(stored, limit));
    table.add(cells_of(stored, limit));
  }
  if (as_json) {
    print_json(objects);
  } else {
    if (!table.empty()) print_text(table.text());
    print("counters of {}, in {}\n",
          format_count(static_cast<std::int64_t>(objects.size()), "configuration"),
          db.file().string());
  }
  return end_of_reading(db, exit_done);
}

}  // namespace greta::tuner::cli
