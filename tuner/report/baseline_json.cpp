#include <fmt/format.h>

#include <cmath>

#include "runtime/device/text/printable.hpp"
#include "tuner/report/baseline_report.hpp"
#include "tuner/report/format.hpp"

namespace greta::tuner {
namespace {

using BaselineJson = nlohmann::ordered_json;

bool is_time(double us) {
  return std::isfinite(us) && us > 0;
}

// A number that was not measured is null.
BaselineJson us_or_null(double us) {
  return is_time(us) ? BaselineJson(us) : BaselineJson();
}

// Times of the other programs' formats, to the picosecond.
double nanoseconds(double us) {
  return std::round(us * 1e6) / 1e3;
}

BaselineJson side_json(const BaselineReport::Side& side) {
  return {{"file", side.file},
          {"device", side.device},
          {"driver", side.driver},
          {"compiler", side.compiler},
          {"greta_version", side.greta_version},
          {"revision", side.greta_revision}};
}

BaselineJson result_time_json(const MeasuredResult& result) {
  const auto& config = result.subject.config;
  return {{"origin", to_string(result.subject.origin)},
          {"config", config ? BaselineJson(config->text()) : BaselineJson()},
          {"status", result.failure ? to_string(result.failure->status) : "ok"},
          {"median_us", us_or_null(result.us.median)},
          {"low_us", us_or_null(result.us.low)},
          {"high_us", us_or_null(result.us.high)}};
}

// A row; `before` or `now` is null if that side lacks it.
BaselineJson row_json(const MeasuredResult* before, const MeasuredResult* now,
                      std::string_view finding) {
  const Subject& subject = (now ? now : before)->subject;
  const auto words = subject.words();
  return {{"name", benchmark_name(subject)},
          {"finding", finding},
          {"op", words.op},
          {"dtype", words.dtype},
          {"out_dtype", words.out_dtype},
          {"problem", words.dims},
          {"attributes", words.attributes},
          {"backend", subject.backend},
          {"cold", subject.cache == CacheState::not_timed
                       ? BaselineJson()
                       : BaselineJson(subject.cache == CacheState::cold)},
          {"before", before ? result_time_json(*before) : BaselineJson()},
          {"now", now ? result_time_json(*now) : BaselineJson()}};
}

BaselineJson change_json_of(const ResultChange& row) {
  auto json = row_json(&row.base, &row.fresh, finding_text(row));
  const bool known = !row.broke && row.change.low > 0;
  json["ratio"] = row.broke ? BaselineJson() : us_or_null(row.change.estimate);
  json["ratio_low"] = known ? us_or_null(row.change.low) : BaselineJson();
  json["ratio_high"] = known ? us_or_null(row.change.high) : BaselineJson();
  json["processor_time"] = row.by_processor;
  if (row.acceptance) {
    json["accepted"] = {{"reason", row.acceptance->reason}, {"until", row.acceptance->until}};
  }
  return json;
}

bool has_time(const MeasuredResult& result) {
  return !result.failure && is_time(result.us.median);
}

bool has_interval(const MeasuredResult& result) {
  return is_time(result.us.low) && is_time(result.us.high);
}

// Returns what the other programs show beside a time: one line for each fact.
std::string extra_text(const MeasuredResult& result, const ResultChange* row) {
  const Subject& subject = result.subject;
  std::string text = "device: " + device::one_line(subject.device);
  if (subject.config) text += "\nconfiguration: " + device::one_line(subject.config->text());
  if (!row) return text + "\nnot in the older baseline";
  text += fmt::format("\nfinding: {}", finding_text(*row));
  if (row->acceptance) {
    text += fmt::format(" until {}: {}", row->acceptance->until, row->acceptance->reason);
  }
  if (row->change.low > 0) {
    text += fmt::format("\nratio to the older baseline: {:.3f} ({:.3f} to {:.3f})",
                        row->change.estimate, row->change.low, row->change.high);
  }
  return text;
}

// Calls use(result, change) for each row that the new baseline has a time of; the change is null if
// the old one lacks the row.
template <typename Use>
void for_each_time(const BaselineComparison& comparison, const Use& use) {
  for (const auto& row : comparison.changes) {
    if (has_time(row.fresh)) use(row.fresh, &row);
  }
  for (const auto& result : comparison.only_fresh) {
    if (has_time(result)) use(result, static_cast<const ResultChange*>(nullptr));
  }
}

}  // namespace

BaselineJson baseline_json(const BaselineReport& report) {
  const auto& comparison = report.comparison;
  const auto counts = counts_of(comparison);
  BaselineJson rows = BaselineJson::array();
  for (const auto& row : comparison.changes) rows.push_back(change_json_of(row));
  for (const auto& row : comparison.only_base) {
    rows.push_back(row_json(&row, nullptr, "only before"));
  }
  for (const auto& row : comparison.only_fresh) rows.push_back(row_json(nullptr, &row, "only now"));
  BaselineJson acceptances = BaselineJson::array();
  for (const auto& [acceptance, state, accepted, matches] : report.acceptances) {
    acceptances.push_back({{"benchmark", acceptance.benchmark},
                           {"device", acceptance.device},
                           {"slower", acceptance.most},
                           {"reason", acceptance.reason},
                           {"until", acceptance.until},
                           {"state", to_string(state)},
                           {"rows", accepted}});
  }
  return {{"format", "greta-compare 1"},
          {"base", side_json(report.base)},
          {"new", side_json(report.fresh)},
          {"threshold", report.margin},
          {"confidence", comparison.confidence},
          {"regressions", comparison.regressions()},
          {"counts",
           {{"slower", counts.slower},
            {"accepted", counts.accepted},
            {"fails", counts.fails},
            {"faster", counts.faster},
            {"same", counts.same},
            {"inconclusive", counts.inconclusive},
            {"only_before", comparison.only_base.size()},
            {"only_now", comparison.only_fresh.size()}}},
          {"acceptances", std::move(acceptances)},
          {"results", std::move(rows)}};
}

BaselineJson baseline_bmf(const BaselineReport& report) {
  BaselineJson benchmarks = BaselineJson::object();
  for_each_time(report.comparison, [&](const MeasuredResult& result, const ResultChange*) {
    BaselineJson latency{{"value", nanoseconds(result.us.median)}};
    if (has_interval(result)) {
      latency["lower_value"] = nanoseconds(result.us.low);
      latency["upper_value"] = nanoseconds(result.us.high);
    }
    benchmarks[benchmark_name(result.subject)] = {{"latency", std::move(latency)}};
  });
  return benchmarks;
}

BaselineJson baseline_github(const BaselineReport& report) {
  BaselineJson benchmarks = BaselineJson::array();
  for_each_time(report.comparison, [&](const MeasuredResult& result, const ResultChange* row) {
    BaselineJson entry{{"name", benchmark_name(result.subject)},
                       {"unit", "ns"},
                       {"value", nanoseconds(result.us.median)}};
    if (has_interval(result)) {
      entry["range"] = fmt::format("± {:.3g}", nanoseconds((result.us.high - result.us.low) / 2));
    }
    entry["extra"] = extra_text(result, row);
    benchmarks.push_back(std::move(entry));
  });
  return benchmarks;
}

}  // namespace greta::tuner
