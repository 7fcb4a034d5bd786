#include "tuner/cli/run/model_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/device/telemetry.hpp"
#include "runtime/pipeline/llama/trace_check.hpp"
#include "tuner/bench/trace.hpp"
#include "tuner/cli/options/kept_cases.hpp"
#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/program/tool.hpp"
#include "tuner/cli/run/explain.hpp"
#include "tuner/cli/run/failed_stage.hpp"
#include "tuner/report/print.hpp"
#include "tuner/report/table.hpp"

namespace greta::tuner::cli {
namespace {

/// Sends telemetry to a trace during its lifetime.
class Listening {
 public:
  explicit Listening(Trace& trace) { telemetry::set_sink(&trace); }
  ~Listening() { telemetry::set_sink(nullptr); }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;
};

constexpr int traced_steps = 4;  ///< number of decoding steps

/// Returns what --explain prints of an operation, for the trace's viewers and greta-report.
std::string details_of(const Explanation& what, std::int64_t tokens) {
  nlohmann::json details{{"tokens", tokens},
                         {"problem", what.problem},
                         {"config", what.config},
                         {"origin", what.origin},
                         {"launches", what.launches}};
  if (what.speedup) details["speedup"] = *what.speedup;
  if (what.expected_regret) details["expected_regret"] = *what.expected_regret;
  return details.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Adds the operations of one replay to the device's track of a trace, starting at the host's
/// start.
void add_operations(Trace& trace, Generation& generation, std::int64_t tokens,
                    const PipelineGraph& pass) {
  const auto explained = pass.explain();
  const auto start = Trace::Clock::now();
  const auto times = pass.time(generation.runner().queue()).value();
  const auto at = [](double us) {
    return std::chrono::duration_cast<Trace::Clock::duration>(
        std::chrono::duration<double, std::micro>(us));
  };
  const std::string device = generation.runtime().device().info().id();
  for (std::size_t i = 0; i < times.size(); ++i) {
    trace.device_span(device, pass.operations()[i].label, start + at(times[i].start_us),
                      at(times[i].us), details_of(explained.at(i), tokens));
  }
}

/// Returns the result closest to its bound, by stage.
std::vector<StageFinding> closest(const std::vector<StageFinding>& findings) {
  std::vector<StageFinding> worst;
  for (const StageFinding& finding : findings) {
    const auto known = std::find_if(worst.begin(), worst.end(), [&](const StageFinding& other) {
      return other.stage == finding.stage;
    });
    if (known == worst.end()) {
      worst.push_back(finding);
    } else if (finding.ratio() > known->ratio()) {
      *known = finding;
    }
  }
  return worst;
}

std::string closest_text(const std::vector<StageFinding>& findings) {
  Table table({{"stage"}, {"layer", Table::Align::right}, {"error / bound", Table::Align::right}});
  for (const StageFinding& finding : closest(findings)) {
    table.add({std::string(to_string(finding.stage)),
               finding.layer < 0 ? "" : std::to_string(finding.layer),
               fmt::format("{:.3f}", finding.ratio())});
  }
  return table.text();
}

nlohmann::json finding_json(const StageFinding& finding) {
  const double ratio = finding.ratio();
  return {{"stage", to_string(finding.stage)},
          {"layer", finding.layer < 0 ? nlohmann::json() : nlohmann::json(finding.layer)},
          {"ratio", std::isfinite(ratio) ? nlohmann::json(ratio) : nlohmann::json()}};
}

/// What the passes so far have shown.
struct TraceResult {
  std::int64_t passes = 0, tokens = 0;
  std::vector<StageFinding> findings;
  std::optional<StageFinding> wrong;
  std::string message{};  ///< about the wrong one
  std::optional<StageExamination> examined{};
};

void print_trace_json(Generation& generation, const TraceResult& result) {
  auto list = nlohmann::json::array();
  for (const StageFinding& finding : closest(result.findings)) {
    list.push_back(finding_json(finding));
  }
  nlohmann::json wrong;
  if (result.wrong) {
    wrong = finding_json(*result.wrong);
    wrong["message"] = result.message;
    wrong["only_nan"] = result.wrong->passed;
    wrong["examined"] = result.examined ? json_of(*result.examined) : nlohmann::json::array();
  }
  print_json(nlohmann::json{{"format", "greta-run trace-layers 1"},
                            {"device", generation.runtime().device().info().id()},
                            {"dtype", to_string(generation.runner().dtype())},
                            {"passed", !result.wrong},
                            {"passes", result.passes},
                            {"tokens", result.tokens},
                            {"stages", result.findings.size()},
                            {"closest", std::move(list)},
                            {"wrong", std::move(wrong)}});
}

/// Returns the first stage with NaN, unless one that fails comes first.
std::optional<StageFinding> first_nan(const std::vector<StageFinding>& findings) {
  const auto found = std::find_if(findings.begin(), findings.end(), [](const StageFinding& one) {
    return one.has_nan || !one.passed;
  });
  if (found == findings.end() || !found->passed) return std::nullopt;
  return *found;
}

}  // namespace

void write_model_trace(Generation& generation, const std::filesystem::path& file, bool untuned) {
  Trace trace;
  const DeviceInfo& device = generation.runtime().device().info();
  trace.fact("configurations", untuned ? "default" : "tuned");
  trace.fact("device", fmt::format("{} ({})", device.name, to_string(device.backend)));
  trace.write(file).value();  // reports an error before anything runs
  try {
    const Listening listening(trace);
    generation.run();
  } catch (...) {
    trace.write(file).value();
    throw;
  }
  // Runs again, operation by operation, because a graph has no times inside.
  visit_passes(generation.runner(), generation.prompt(),
               [&](std::int64_t tokens, const PipelineGraph& pass) {
                 add_operations(trace, generation, tokens, pass);
               });
  trace.write(file).value();
}

int trace_layers(Generation& generation, const RuntimeChoice& runtime,
                 const std::filesystem::path& keep_failed, bool json) {
  LlamaRunner& runner = generation.runner();
  TraceTypes types;
  types.weights = types.activations = types.cache = runner.dtype();
  const LlamaTraceCheck checker(generation.model(), types);
  TraceResult result;
  std::vector<std::int32_t> ids = generation.prompt();
  const std::int64_t last =
      std::min<std::int64_t>(static_cast<std::int64_t>(ids.size()) +
                                 std::min<std::int64_t>(traced_steps, generation.room()) - 1,
                             runner.capacity());
  while (runner.position() < last) {
    const std::int64_t rest = static_cast<std::int64_t>(ids.size()) - runner.position();
    const std::int64_t count = std::min(rest, runner.passes(rest).front());
    const auto fed = std::span(ids).subspan(static_cast<std::size_t>(runner.position()),
                                            static_cast<std::size_t>(count));
    const std::int64_t first = runner.position();
    const std::int64_t tokens = runner.passes(rest).front();
    const LlamaTrace trace = runner.trace(fed);
    const auto findings = checker.check(
        trace, [&](std::int64_t layer) { return runner.probe_attention(trace, layer); });
    ++result.passes;
    result.tokens = runner.position();
    result.findings.insert(result.findings.end(), findings.begin(), findings.end());
    result.wrong = first_nan(findings);
    if (result.wrong) {
      result.message = fmt::format("{} has NaN, which its inputs and the model's weights give",
                                   stage_place(result.wrong->layer, result.wrong->stage));
    } else if ((result.wrong = first_failure(findings))) {
      result.message = result.wrong->text();
    }
    if (result.wrong) {
      if (!json) print("tokens {} to {}: {}\n", first, first + count - 1, result.message);
      if (!result.wrong->passed) {
        result.examined = examine_stage(generation, runtime, *result.wrong, tokens,
                                        folder_of_failures(keep_failed, true));
        if (!json) print_text(text_of(*result.examined));
      }
      if (json) print_trace_json(generation, result);
      return exit_failed;
    }
    if (runner.position() == static_cast<std::int64_t>(ids.size())) {
      ids.push_back(runner.likeliest().front());
    }
  }
  if (json) {
    print_trace_json(generation, result);
    return exit_done;
  }
  print("{} passes over {} tokens, {} stages: all within their bounds; closest:\n", result.passes,
        result.tokens, result.findings.size());
  print_text(closest_text(result.findings));
  return exit_done;
}

}  // namespace greta::tuner::cli
