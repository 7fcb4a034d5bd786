#include "tuner/cli/db/list_counters.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

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

namespace greta::tuner::cli {
namespace {

constexpr std::size_t most_parts = 20;
constexpr double smallest_stall = 0.05;

/// Returns what limited the configuration, by today's peaks of its device.
std::string limiter_of(const TunedDb& db, const StoredCounters& stored) {
  const auto problem = Problem::parse(stored.problem);
  if (!problem) return {};
  const auto ceilings = db.ceilings(stored.device);
  Profile profile;
  profile.cold = stored.counters.cold;
  profile.work = work_of(known_operations(), *problem);
  profile.copy_gbps = ceiling(ceilings, ceiling_copy);
  profile.arithmetic_gflops = arithmetic_gflops(problem->dtype, profile.work, ceilings);
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

/// Returns "read from memory 130 MiB, hits in L2 82 %, …, waits for … 29 %".
std::string figures_text(const Counters& counters) {
  std::vector<std::string> parts;
  for (const Figure& figure : figures()) {
    if (figure.name == figure_shared_peak || figure.name == figure_counted_time) continue;
    const auto value = counters.figure(figure.name);
    if (value) parts.push_back(fmt::format("{} {}", figure.label, figure_text(figure, *value)));
  }
  for (const Stall& stall : stalls(counters)) {
    if (parts.size() < most_parts && stall.share >= smallest_stall) {
      parts.push_back(
          fmt::format("waits for {} {}", stall.reason->words, format_share(stall.share)));
    }
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string counters_text(const StoredCounters& stored, const std::string& limit) {
  std::string text = fmt::format("{} on {}, {}\n", stored.problem, stored.device_name,
                                 stored.counters.cold ? "cold" : "warm");
  text += format_row("config", stored.config.shown());
  if (stored.us > 0) text += format_row("time", format_time(stored.us));
  text += format_row("counted", figures_text(stored.counters));
  if (!limit.empty()) text += format_row("limit", limit);
  return text + format_row("by", fmt::format("{}, {}, {}", stored.counters.source,
                                             format_count(stored.counters.passes, "run"),
                                             stored.recorded_utc.substr(0, 10)));
}

}  // namespace

int list_counters(const TunedDb& db, const ResultFilter& filter, bool as_json) {
  std::map<std::string, DeviceInfo> devices;
  for (const StoredDevice& device : db.devices()) {
    devices.emplace(device.info.fingerprint(), device.info);
  }
  auto objects = nlohmann::json::array();
  std::string text;
  for (const StoredCounters& stored : db.counters()) {
    const auto device = devices.find(stored.device);
    if (!filter.matches(stored, device == devices.end() ? nullptr : &device->second)) continue;
    const std::string limit = limiter_of(db, stored);
    objects.push_back(counters_object(stored, limit));
    text += counters_text(stored, limit) + "\n";
  }
  if (as_json) {
    print_json(objects);
  } else {
    print_text(text);
    print("counters of {}, in {}\n",
          format_count(static_cast<std::int64_t>(objects.size()), "configuration"),
          db.file().string());
  }
  return end_of_reading(db, exit_done);
}

}  // namespace greta::tuner::cli
