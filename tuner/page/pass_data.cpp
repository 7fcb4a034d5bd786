#include <algorithm>
#include <map>
#include <optional>

#include "tuner/page/page_parts.hpp"

namespace greta::tuner {
namespace {

using nlohmann::json;

/// Launches further apart than this belong to different passes: between two passes, the host
/// chooses the next token.
constexpr double least_gap_us = 500;
constexpr std::size_t most_passes = 64;

struct Span {
  std::string name;
  double start_us = 0, us = 0;
  json details{};  ///< what greta-run --explain prints; null in traces of older versions
};

/// Returns the label without its layer, from "layer 3 attention".
std::string without_layer(const std::string& label) {
  if (!label.starts_with("layer ")) return label;
  return label.substr(std::min(label.size(), label.find(' ', 6) + 1));
}

/// Returns a member that is a text or a number; other files may have anything in its place.
std::string text_of(const json& object, const char* name) {
  if (!object.is_object() || !object.contains(name) || !object[name].is_string()) return {};
  return object[name].get<std::string>();
}
std::optional<double> number_of(const json& object, const char* name) {
  if (!object.is_object() || !object.contains(name) || !object[name].is_number()) return {};
  return object[name].get<double>();
}

json known_number(const std::optional<double>& number) {
  return number ? known(*number) : json(nullptr);
}

/// Returns the spans of devices; process 0 is the host.
std::vector<Span> device_spans(const json& trace) {
  std::vector<Span> spans;
  if (!trace.is_object() || !trace.contains("traceEvents")) return spans;
  for (const auto& event : trace["traceEvents"]) {
    if (text_of(event, "ph") != "X" || number_of(event, "pid").value_or(0) == 0) continue;
    spans.push_back({text_of(event, "name"), number_of(event, "ts").value_or(0),
                     number_of(event, "dur").value_or(0), event.value("args", json(nullptr))});
  }
  std::stable_sort(spans.begin(), spans.end(),
                   [](const Span& a, const Span& b) { return a.start_us < b.start_us; });
  return spans;
}

json pass_json(const PageTrace& trace, std::size_t number, const std::vector<Span>& spans) {
  struct Sum {
    std::size_t runs = 0;
    double us = 0;
    double launches = 0;
    json details{};  ///< of the first one
  };
  // Operations of one name differ in their problems where layers differ.
  std::map<std::pair<std::string, std::string>, Sum> sums;
  double busy = 0, launches = 0;
  for (const Span& span : spans) {
    Sum& sum = sums[{without_layer(span.name), text_of(span.details, "problem")}];
    if (sum.runs++ == 0) sum.details = span.details;
    sum.us += span.us;
    sum.launches += number_of(span.details, "launches").value_or(1);
    launches += number_of(span.details, "launches").value_or(1);
    busy += span.us;
  }
  json operations = json::array();
  for (const auto& [name, sum] : sums) {
    operations.push_back({{"name", name.first},
                          {"problem", name.second},
                          {"runs", sum.runs},
                          {"us", known(sum.us)},
                          {"launches", sum.launches},
                          {"config", text_of(sum.details, "config")},
                          {"origin", text_of(sum.details, "origin")},
                          {"speedup", known_number(number_of(sum.details, "speedup"))},
                          {"regret", known_number(number_of(sum.details, "expected_regret"))}});
  }
  const double wall = spans.back().start_us + spans.back().us - spans.front().start_us;
  const json other = trace.trace.value("otherData", json(nullptr));
  return {{"file", trace.name},
          {"number", number},
          {"configurations", text_of(other, "configurations")},
          {"device", text_of(other, "device")},
          {"tokens", known_number(number_of(spans.front().details, "tokens"))},
          {"launches", launches},
          {"wall_us", known(wall)},
          {"gaps_us", known(std::max(0.0, wall - busy))},
          {"operations", operations}};
}

}  // namespace

json pass_data(const std::vector<PageTrace>& traces) {
  json list = json::array();
  for (const auto& one : traces) {
    std::vector<Span> pass;
    std::size_t number = 0;
    const auto finish = [&] {
      if (!pass.empty() && number < most_passes) list.push_back(pass_json(one, number++, pass));
      pass.clear();
    };
    for (const Span& span : device_spans(one.trace)) {
      if (!pass.empty() &&
          (span.start_us - pass.back().start_us - pass.back().us > least_gap_us ||
           number_of(span.details, "tokens") != number_of(pass.back().details, "tokens")))
        finish();
      pass.push_back(span);
    }
    finish();
  }
  return list;
}

}  // namespace greta::tuner
