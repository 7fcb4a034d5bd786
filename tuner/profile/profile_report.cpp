#include "tuner/profile/profile_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "db/json.hpp"
#include "tuner/compile/loop_report.hpp"
#include "tuner/profile/limiter.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/table.hpp"

namespace greta::tuner {
namespace {

constexpr std::size_t most_reasons = 5;
constexpr double smallest_stall = 0.02;

using Cell = std::function<std::string(const ProfiledWay&)>;

/// The table: a row for each figure that a way has.
class WayRows {
 public:
  explicit WayRows(const Profile& profile) : profile_(profile), table_(titles(profile)) {}

  /// Adds a row, unless no way has a cell in it.
  void add(const std::string& label, const Cell& cell, const std::string& roofline = {}) {
    std::vector<std::string> cells{label};
    for (const ProfiledWay& way : profile_.ways) {
      cells.push_back(way.trial.ok() ? cell(way) : std::string());
    }
    const bool empty = std::all_of(cells.begin() + 1, cells.end(),
                                   [](const std::string& text) { return text.empty(); });
    if (empty) return;
    cells.push_back(roofline);
    table_.add(std::move(cells));
  }
  std::string text() const { return table_.text(); }

 private:
  static std::vector<Table::Column> titles(const Profile& profile) {
    using enum Table::Align;
    std::vector<Table::Column> columns{{""}};
    for (const ProfiledWay& way : profile.ways) columns.push_back({way.name, right});
    columns.push_back({"roofline", right});
    return columns;
  }

  const Profile& profile_;
  Table table_;
};

void add_times(const Profile& profile, WayRows& rows) {
  const Work& work = profile.work;
  rows.add(
      "time",
      [](const ProfiledWay& way) { return format_time(way.us.estimate, way.us.low, way.us.high); },
      profile.roofline_us > 0 ? format_time(profile.roofline_us) : "");
  rows.add("faster than the default", [](const ProfiledWay& way) {
    if (way.speedup.estimate <= 0) return std::string();
    return fmt::format("{:.3g} ({:.3g} to {:.3g})", way.speedup.estimate, way.speedup.low,
                       way.speedup.high);
  });
  rows.add("roofline reached", [&](const ProfiledWay& way) {
    return profile.roofline_us > 0 ? format_share(profile.roofline_us / way.us.estimate)
                                   : std::string();
  });
  rows.add(
      "rate of arithmetic",
      [&](const ProfiledWay& way) {
        return work.flops > 0 ? format_rate(work.flops, way.us.estimate) : std::string();
      },
      profile.arithmetic_gflops > 0 ? format_rate(profile.arithmetic_gflops * 1e3, 1) : "");
  rows.add(
      "least bytes over time",
      [&](const ProfiledWay& way) {
        return format_rate(Work{.flops = 0, .bytes = work.bytes}, way.us.estimate);
      },
      profile.copy_gbps > 0 ? format_rate(Work{.flops = 0, .bytes = profile.copy_gbps * 1e3}, 1)
                            : "");
}

void add_counters(const Profile& profile, WayRows& rows) {
  for (const Figure& figure : figures()) {
    const std::string name(figure.name);
    if (name == figure_counted_time || name == figure_shared_peak) continue;  // for the limiter
    const bool memory = name == figure_memory_read;
    rows.add(
        std::string(figure.label),
        [&](const ProfiledWay& way) {
          const auto value = way.counters ? way.counters->figure(name) : std::nullopt;
          return value ? figure_text(figure, *value) : std::string();
        },
        memory ? format_bytes(profile.work.bytes) + " moved" : "");
  }
}

/// Returns the reasons that are among the longest of some way, in their order.
std::vector<const StallReason*> told_stalls(const Profile& profile) {
  std::vector<const StallReason*> told;
  for (const ProfiledWay& way : profile.ways) {
    if (!way.counters) continue;
    auto longest = stalls(*way.counters);
    longest.resize(std::min(longest.size(), most_reasons));
    for (const Stall& stall : longest) {
      const bool known = std::find(told.begin(), told.end(), stall.reason) != told.end();
      if (stall.share >= smallest_stall && !known) told.push_back(stall.reason);
    }
  }
  return told;
}

void add_stalls(const Profile& profile, WayRows& rows) {
  for (const StallReason* reason : told_stalls(profile)) {
    rows.add("waits for " + std::string(reason->words), [&](const ProfiledWay& way) {
      const auto share =
          way.counters ? way.counters->figure(stall_figure(reason->name)) : std::nullopt;
      return share ? format_share(*share) : std::string();
    });
  }
}

void add_energy(const Profile&, WayRows& rows) {
  rows.add("energy of a launch, warm", [](const ProfiledWay& way) {
    return way.energy ? fmt::format("{:.4g} J", way.energy->joules) : std::string();
  });
}

std::string heading(const Profile& profile) {
  std::string text = fmt::format("{} on {} ({}), {}\n", profile.problem.key(), profile.device.name,
                                 profile.device.id(), profile.cold ? "cold" : "warm");
  for (const ProfiledWay& way : profile.ways) {
    text += format_row(way.name, way.config.shown());
    for (const StaticKernel& kernel : way.kernels) {
      text += format_row("", kernel.name + ": " + static_text(kernel));
      if (kernel.loop) text += loop_text(*kernel.loop);
    }
    if (!way.trial.ok()) {
      text +=
          format_row("", fmt::format("{}: {}", to_string(*way.trial.failure), way.trial.message));
    }
  }
  return text;
}

std::string counters_line(const Profile& profile) {
  if (!profile.no_counters.empty()) return format_row("no counters", profile.no_counters, 0);
  std::string text;
  for (const ProfiledWay& way : profile.ways) {
    if (way.counters) {
      if (text.empty()) {
        text =
            format_row("counters",
                       fmt::format("{}, {} of each configuration, apart from the times",
                                   way.counters->source, format_count(way.counters->passes, "run")),
                       0);
      }
    } else if (way.trial.ok()) {
      text += format_row("no counters", fmt::format("of the {}: {}", way.name, way.no_counters), 0);
    }
  }
  return text;
}

nlohmann::json interval_json(const Interval& interval) {
  return {{"estimate", interval.estimate}, {"low", interval.low}, {"high", interval.high}};
}

nlohmann::json way_json(const Profile& profile, const ProfiledWay& way) {
  nlohmann::json json{{"name", way.name},
                      {"config", to_json(way.config)},
                      {"config_text", way.config.shown()},
                      {"status", way.trial.ok() ? "ok" : to_string(*way.trial.failure)}};
  if (!way.trial.ok()) {
    json["message"] = way.trial.message;
    return json;
  }
  json["us"] = interval_json(way.us);
  if (way.speedup.estimate > 0) json["speedup"] = interval_json(way.speedup);
  json["kernels"] = static_json(way.kernels);
  if (profile.roofline_us > 0) json["roofline"] = profile.roofline_us / way.us.estimate;
  json["limiter"] = limiter(profile, way);
  if (way.counters) {
    json["counters"] = to_json(*way.counters);
    nlohmann::json used = nlohmann::json::array();
    for (const Usage& usage : usages(profile, way)) {
      used.push_back({{"resource", usage.resource}, {"share", usage.share}, {"text", usage.text}});
    }
    json["usage"] = std::move(used);
  } else {
    json["no_counters"] = way.no_counters;
  }
  if (way.energy) json["joules"] = way.energy->joules;
  return json;
}

}  // namespace

std::string figure_text(const Figure& figure, double value) {
  switch (figure.unit) {
    case FigureUnit::bytes:
      return format_bytes(value);
    case FigureUnit::bytes_per_clock:
      return fmt::format("{:.1f} B", value);
    case FigureUnit::share:
      return format_share(value);
    case FigureUnit::number:
      break;
  }
  return value < 1e6 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g} million", value / 1e6);
}

std::string profile_text(const Profile& profile) {
  std::string text = heading(profile);
  WayRows rows(profile);
  add_times(profile, rows);
  add_counters(profile, rows);
  add_stalls(profile, rows);
  add_energy(profile, rows);
  text += "\n" + rows.text() + "\n" + counters_line(profile);
  for (const ProfiledWay& way : profile.ways) {
    const std::string why = limiter(profile, way);
    if (!why.empty()) text += format_row(way.name, why, 0);
  }
  return text;
}

nlohmann::json profile_json(const Profile& profile) {
  nlohmann::json ways = nlohmann::json::array();
  for (const ProfiledWay& way : profile.ways) ways.push_back(way_json(profile, way));
  nlohmann::json json{{"problem", profile.problem.key()},
                      {"device", to_json(profile.device)},
                      {"cold", profile.cold},
                      {"work", {{"flops", profile.work.flops}, {"bytes", profile.work.bytes}}},
                      {"copy_gbps", profile.copy_gbps},
                      {"arithmetic_gflops", profile.arithmetic_gflops},
                      {"roofline_us", profile.roofline_us},
                      {"ways", std::move(ways)}};
  if (!profile.no_counters.empty()) json["no_counters"] = profile.no_counters;
  return json;
}

}  // namespace greta::tuner
