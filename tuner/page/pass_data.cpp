#include <algorithm>
#include <map>

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
};

/// Returns the label without its layer, from "layer 3 attention".
std::string without_layer(const std::string& label) {
  if (!label.starts_with("layer ")) return label;
  return label.substr(std::min(label.size(), label.find(' ', 6) + 1));
}

/// Returns the spans of devices; process 0 is the host.
std::vector<Span> device_spans(const json& trace) {
  std::vector<Span> spans;
  if (!trace.is_object() || !trace.contains("traceEvents")) return spans;
  for (const auto& event : trace["traceEvents"]) {
    if (!event.is_object() || event.value("ph", "") != "X" || event.value("pid", 0) == 0) continue;
    spans.push_back({event.value("name", ""), event.value("ts", 0.0), event.value("dur", 0.0)});
  }
  std::stable_sort(spans.begin(), spans.end(),
                   [](const Span& a, const Span& b) { return a.start_us < b.start_us; });
  return spans;
}

json pass_json(const std::string& file, std::size_t number, const std::vector<Span>& spans) {
  struct Sum {
    std::size_t runs = 0;
    double us = 0;
  };
  std::map<std::string, Sum> sums;
  double busy = 0;
  for (const Span& span : spans) {
    Sum& sum = sums[without_layer(span.name)];
    ++sum.runs;
    sum.us += span.us;
    busy += span.us;
  }
  json operations = json::array();
  for (const auto& [name, sum] : sums)
    operations.push_back({{"name", name}, {"runs", sum.runs}, {"us", known(sum.us)}});
  const double wall = spans.back().start_us + spans.back().us - spans.front().start_us;
  return {{"file", file},
          {"number", number},
          {"launches", spans.size()},
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
      if (!pass.empty() && number < most_passes)
        list.push_back(pass_json(one.name, number++, pass));
      pass.clear();
    };
    for (const Span& span : device_spans(one.trace)) {
      if (!pass.empty() && span.start_us - pass.back().start_us - pass.back().us > least_gap_us)
        finish();
      pass.push_back(span);
    }
    finish();
  }
  return list;
}

}  // namespace greta::tuner
