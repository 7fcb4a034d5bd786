#include "tuner/cli/run/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "runtime/device/text/printable.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/table.hpp"

namespace greta::tuner::cli {
namespace {

struct Line {
  std::string name;
  Explanation what;
  int count = 0;
  double us = 0;
};

/// Returns operations that are the same in every layer once.
std::vector<Line> lines_of(const std::vector<Explanation>& all,
                           const std::vector<OperationTime>& times) {
  std::vector<Line> lines;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string name = name_of_operation(all[i].label);
    auto line = std::find_if(lines.begin(), lines.end(), [&](const Line& known) {
      return known.name == name && known.what.problem == all[i].problem;
    });
    if (line == lines.end()) line = lines.insert(lines.end(), {name, all[i]});
    ++line->count;
    if (i < times.size()) line->us += times[i].us;
  }
  return lines;
}

/// Returns the number of launches of kernels, and of those in a layer.
struct Launches {
  std::size_t all = 0, of_a_layer = 0;
};
Launches launches_of(const std::vector<Explanation>& all) {
  std::set<std::string> layers;
  std::size_t count = 0, in_layers = 0;
  for (const Explanation& one : all) {
    count += one.launches;
    if (!one.label.starts_with("layer ")) continue;
    layers.insert(one.label.substr(0, one.label.find(' ', 6)));
    in_layers += one.launches;
  }
  return {count, layers.empty() ? 0 : in_layers / layers.size()};
}

std::string launches_text(const std::vector<Explanation>& all) {
  const Launches launches = launches_of(all);
  if (launches.of_a_layer == 0) return fmt::format("launches: {}\n", launches.all);
  return fmt::format("launches: {}, of which {} in each layer\n", launches.all,
                     launches.of_a_layer);
}

template <typename T>
nlohmann::json or_null(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

std::string gain_of(const Explanation& what) {
  if (what.config.empty()) return "";
  std::string text = what.speedup ? fmt::format("{:.2f}x", *what.speedup) : "-";
  if (what.expected_regret && *what.expected_regret > 1) {
    text += fmt::format(", expected regret {:.0f} %", 100 * (*what.expected_regret - 1));
  }
  return text;
}

}  // namespace

std::string name_of_operation(const std::string& label) {
  if (!label.starts_with("layer ")) return label;
  return label.substr(std::min(label.size(), label.find(' ', 6) + 1));
}

std::string chains_table(const std::vector<ChosenChain>& chains) {
  if (chains.empty()) return "";
  Table table({{"chain"}, {"alternative"}, {"origin"}, {"gain"}});
  for (const auto& [chain, answer, instead] : chains) {
    table.add({chain.key(), answer.config.variant, answer.origin_text(),
               answer.speedup ? fmt::format("{:.3f}x of the phase", answer.speedup->ratio) : "-"});
  }
  return table.text();
}

std::string explain_text(const PipelineGraph& pass, const std::vector<OperationTime>& times) {
  std::vector<Table::Column> columns{{"operation"}, {"runs", Table::Align::right}};
  if (!times.empty()) columns.push_back({"time", Table::Align::right});
  for (const char* title : {"problem", "configuration", "origin", "gain"})
    columns.push_back({title});
  Table table(columns);
  std::string remarks;
  const std::vector<Explanation> all = pass.explain();
  for (const Line& line : lines_of(all, times)) {
    std::vector<std::string> cells{line.name, std::to_string(line.count)};
    if (!times.empty()) cells.push_back(format_time(line.us));
    for (const std::string& text : {line.what.problem, line.what.config, line.what.origin}) {
      cells.push_back(text);
    }
    cells.push_back(gain_of(line.what));
    table.add(cells);
    if (line.what.remark.empty()) continue;
    remarks += fmt::format("{}: {}\n", line.name, one_line(line.what.remark));
  }
  const PipelineMemory& memory = pass.memory();
  return table.text() + chains_table(pass.chains()) + remarks + launches_text(all) +
         fmt::format("memory: {} for temporaries ({} without sharing), {} workspace\n",
                     format_bytes(static_cast<double>(memory.arena)),
                     format_bytes(static_cast<double>(memory.temporaries)),
                     format_bytes(static_cast<double>(memory.workspace)));
}

nlohmann::json explain_json(const PipelineGraph& pass, const std::vector<OperationTime>& times) {
  auto operations = nlohmann::json::array(), chains = nlohmann::json::array();
  const std::vector<Explanation> all = pass.explain();
  for (const Line& line : lines_of(all, times)) {
    const Explanation& what = line.what;
    operations.push_back({{"operation", line.name},
                          {"runs", line.count},
                          {"us", times.empty() ? nlohmann::json() : nlohmann::json(line.us)},
                          {"problem", what.problem},
                          {"config", what.config},
                          {"origin", what.origin},
                          {"speedup", or_null(what.speedup)},
                          {"expected_regret", or_null(what.expected_regret)},
                          {"launches", what.launches},
                          {"remark", what.remark}});
  }
  for (const auto& [chain, answer, instead] : pass.chains()) {
    chains.push_back(
        {{"chain", chain.key()},
         {"alternative", answer.config.variant},
         {"origin", answer.origin_text()},
         {"speedup", answer.speedup ? nlohmann::json(answer.speedup->ratio) : nlohmann::json()}});
  }
  const Launches launches = launches_of(all);
  const PipelineMemory& memory = pass.memory();
  return {{"operations", std::move(operations)},
          {"chains", std::move(chains)},
          {"launches", launches.all},
          {"launches_of_a_layer", launches.of_a_layer},
          {"memory",
           {{"temporaries", memory.arena},
            {"without_sharing", memory.temporaries},
            {"workspace", memory.workspace}}}};
}

void visit_passes(LlamaRunner& runner, std::span<const std::int32_t> prompt,
                  const PassVisit& visit) {
  runner.reset();
  const auto each = static_cast<std::int64_t>(prompt.size()) / runner.batch();
  const std::int64_t last = runner.passes(each).back();
  runner.feed(prompt);
  visit(last, runner.pass(last));
  if (last == 1 || each == runner.capacity()) return;
  runner.feed(std::vector<std::int32_t>(runner.likeliest().begin(), runner.likeliest().end()));
  visit(1, runner.pass(1));
}

}  // namespace greta::tuner::cli
