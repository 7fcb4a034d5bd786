#include "tuner/report/soak_report.hpp"

#include <fmt/format.h>

#include <cmath>

#include "tuner/report/csv.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/table.hpp"

namespace greta::tuner {
namespace {

using SoakJson = nlohmann::ordered_json;

constexpr double mib = 1 << 20;

std::string drift_text(const Interval& drift) {
  if (drift.low <= 0) return "too few turns";
  return fmt::format("{:+.1f} % ({:+.1f} to {:+.1f})", 100 * (drift.estimate - 1),
                     100 * (drift.low - 1), 100 * (drift.high - 1));
}

std::string wrong_text(const SoakResult& result) {
  if (result.wrong == 0) return result.launches > 0 ? "0" : "";
  return fmt::format("{}, first after {}", result.wrong, format_duration(result.first_wrong_s));
}

std::string verdict_text(const SoakResult& result) {
  if (!result.failure) return std::string(to_string(result.verdict));
  return fmt::format("{}: {}: {}", to_string(result.verdict), to_string(result.failure->status),
                     result.failure->message);
}

std::string growth_text(double bytes) {
  return fmt::format("{:+.1f} MiB", bytes / mib);
}

std::string range_text(const char* what, const SoakRange& range, const char* unit) {
  if (!range.last) return {};
  return fmt::format("{} {:.0f} {} ({:.0f} to {:.0f})\n", what, *range.last, unit, *range.least,
                     *range.most);
}

SoakJson number_or_null(const std::optional<double>& value) {
  return value ? SoakJson(*value) : SoakJson();
}

SoakJson range_json(const SoakRange& range) {
  return {{"least", number_or_null(range.least)},
          {"most", number_or_null(range.most)},
          {"last", number_or_null(range.last)}};
}

SoakJson kernel_json_of(const SoakResult& result) {
  const bool known = result.drift.low > 0 && std::isfinite(result.drift.high);
  const auto share = [&](double value) { return known ? SoakJson(value) : SoakJson(); };
  return {{"benchmark", result.benchmark},
          {"verdict", to_string(result.verdict)},
          {"launches", result.launches},
          {"wrong", result.wrong},
          {"first_wrong_s", result.wrong > 0 ? SoakJson(result.first_wrong_s) : SoakJson()},
          {"compared", result.unordered ? "with the reference" : "bits"},
          {"median_us", result.median_us},
          {"slowest_us", result.slowest_us},
          {"drift", share(result.drift.estimate)},
          {"drift_low", share(result.drift.low)},
          {"drift_high", share(result.drift.high)},
          {"growth_bytes", result.growth_bytes},
          {"failure", result.failure ? SoakJson(result.failure->message) : SoakJson()}};
}

std::string number_field(const std::optional<double>& value) {
  return value ? fmt::format("{:.6g}", *value) : "";
}

}  // namespace

std::string format_duration(double seconds) {
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(seconds);
  if (seconds < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

std::string soak_text(const SoakSummary& summary) {
  using enum Table::Align;
  Table table({{"benchmark"},
               {"launches", right},
               {"wrong", right},
               {"median", right},
               {"slowest", right},
               {"drift"},
               {"memory", right},
               {"verdict"}});
  for (const SoakResult& result : summary.kernels) {
    const bool ran = result.launches > 0;
    table.add({result.benchmark, ran ? std::to_string(result.launches) : "", wrong_text(result),
               ran ? format_time(result.median_us) : "", ran ? format_time(result.slowest_us) : "",
               ran ? drift_text(result.drift) : "", ran ? growth_text(result.growth_bytes) : "",
               verdict_text(result)});
  }
  std::string text = table.text() + "\n";
  text += fmt::format("memory: host {}, device {}\n", growth_text(summary.host_growth),
                      growth_text(summary.device_growth));
  text += range_text("clock", summary.sm_mhz, "MHz");
  text += range_text("temperature", summary.celsius, "°C");
  text += range_text("power", summary.watts, "W");
  if (!summary.throttled.empty()) text += fmt::format("clocks limited: {}\n", summary.throttled);
  return text +
         fmt::format("{} after {}\n", to_string(summary.verdict), format_duration(summary.seconds));
}

SoakJson soak_json(const SoakSummary& summary, const std::string& device, double planned_s,
                   bool interrupted) {
  SoakJson kernels = SoakJson::array();
  for (const SoakResult& result : summary.kernels) kernels.push_back(kernel_json_of(result));
  return {{"format", "greta-soak 1"},
          {"device", device},
          {"verdict", to_string(summary.verdict)},
          {"interrupted", interrupted},
          {"planned_s", planned_s},
          {"seconds", summary.seconds},
          {"host_growth_bytes", summary.host_growth},
          {"device_growth_bytes", summary.device_growth},
          {"sm_mhz", range_json(summary.sm_mhz)},
          {"celsius", range_json(summary.celsius)},
          {"watts", range_json(summary.watts)},
          {"throttled", summary.throttled},
          {"kernels", std::move(kernels)}};
}

std::string soak_csv_header() {
  return "seconds,benchmark,launches,wrong,median_us,longest_us,sm_mhz,memory_mhz,celsius,watts,"
         "throttled,host_mib,device_mib\n";
}

std::string soak_csv_line(const SoakTurn& turn, const std::string& benchmark) {
  const auto time = [](double us) { return us > 0 ? fmt::format("{:.6g}", us) : ""; };
  return fmt::format("{:.3f},{},{},{},{},{},{},{},{},{},{},{:.2f},{:.2f}\n", turn.at_s,
                     csv_quoted(benchmark), turn.launches, turn.wrong, time(turn.median_us),
                     time(turn.longest_us), number_field(turn.card.sm_mhz),
                     number_field(turn.card.memory_mhz), number_field(turn.card.state.celsius),
                     number_field(turn.card.state.watts), csv_quoted(turn.card.state.throttled),
                     turn.host_bytes / mib, turn.device_bytes / mib);
}

}  // namespace greta::tuner
