#include "tuner/cli/run/matrix.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/device/text/printable.hpp"
#include "runtime/pipeline/llama/needs.hpp"
#include "tuner/cli/options/device_options.hpp"
#include "tuner/cli/program/interrupt.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/cli/program/revision.hpp"
#include "tuner/cli/program/tool.hpp"
#include "tuner/cli/run/explain.hpp"
#include "tuner/evaluate/worker_evaluator.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"
#include "tuner/report/table.hpp"

namespace greta::tuner::cli {
namespace {

std::string pass_text(std::int64_t tokens) {
  return tokens == 1 ? "1 token" : fmt::format("{} tokens", tokens);
}

std::string relative_text(const Interval& ratio) {
  if (ratio.estimate <= 0) return "";
  if (ratio.estimate == 1 && ratio.high == 1) return "1";
  if (ratio.low == ratio.high) return fmt::format("{:.3g}", ratio.estimate);
  return fmt::format("{:.3g} ({:.3g} to {:.3g})", ratio.estimate, ratio.low, ratio.high);
}

std::string error_text(const MeasuredResult& result) {
  if (result.failure)
    return fmt::format("{}: {}", to_string(result.failure->status), result.failure->message);
  if (result.verdict.bound <= 0) return "none";
  return fmt::format("{:.2g}, {} of bound", result.verdict.error,
                     format_share(result.verdict.error / result.verdict.bound));
}

std::vector<const MatrixWay*> fastest_first(const MatrixRow& row) {
  std::vector<const MatrixWay*> ways;
  for (const MatrixWay& way : row.ways) ways.push_back(&way);
  const auto later = [](const MatrixWay* way) {
    return way->result.failure || way->result.us.median <= 0;
  };
  std::stable_sort(ways.begin(), ways.end(), [&](const auto* a, const auto* b) {
    if (later(a) != later(b)) return later(b);
    return a->result.us.median < b->result.us.median;
  });
  return ways;
}

/// Returns one table of all rows; each problem is named once.
std::string matrix_table(const std::vector<MatrixRow>& rows) {
  constexpr auto right = Table::Align::right;
  Table table({{"operation"},
               {"pass"},
               {"runs", right},
               {"configuration"},
               {"known"},
               {"time", right},
               {"× fastest", right},
               {"roofline", right},
               {"error"}});
  for (const MatrixRow& row : rows) {
    std::vector<std::string> head{fmt::format("{}", fmt::join(row.names, ", ")),
                                  pass_text(row.tokens), std::to_string(row.count)};
    for (const MatrixWay* way : fastest_first(row)) {
      const MeasuredResult& result = way->result;
      const bool has_time = !result.failure && result.us.median > 0;
      std::vector<std::string> cells = head;
      cells.push_back(way->config.shown());
      cells.push_back(way->known + (way->runs ? ", runs" : ""));
      cells.push_back(has_time ? format_time(result.us.median, result.us.low, result.us.high) : "");
      cells.push_back(relative_text(relative_time(row, *way)));
      cells.push_back(result.roofline > 0 ? format_share(result.roofline) : "");
      cells.push_back(error_text(result));
      table.add(cells);
      head = {"", "", ""};
    }
  }
  return table.text();
}

/// Returns a line for each variant and reason why it has no configuration.
std::string absent_text(const std::vector<MatrixRow>& rows) {
  std::vector<std::string> lines;
  for (const MatrixRow& row : rows) {
    for (const auto& [variant, why] : row.absent) {
      const std::string prefix = variant + ": ";
      const auto reason = std::string_view(why).substr(why.starts_with(prefix) ? prefix.size() : 0);
      auto line = fmt::format("{} {}: {}\n", row.problem.op, variant, one_line(reason));
      if (std::find(lines.begin(), lines.end(), line) == lines.end())
        lines.push_back(std::move(line));
    }
  }
  if (lines.empty()) return "";
  return fmt::format("without a configuration for some problems here:\n  {}",
                     fmt::join(lines, "  "));
}

nlohmann::json way_json(const MatrixRow& row, const MatrixWay& way) {
  const MeasuredResult& result = way.result;
  nlohmann::json object{{"variant", way.config.variant},
                        {"config", way.config.text()},
                        {"known", way.known},
                        {"runs", way.runs},
                        {"status", result.failure ? to_string(result.failure->status) : "ok"}};
  if (result.failure) object["message"] = result.failure->message;
  if (!result.verdict.method.empty()) {
    object["error"] = result.verdict.error;
    object["bound"] = result.verdict.bound;
  }
  if (result.failure || result.us.median <= 0) return object;
  object["median_us"] = result.us.median;
  object["low_us"] = result.us.low;
  object["high_us"] = result.us.high;
  object["relative"] = relative_time(row, way).estimate;
  if (result.roofline > 0) object["roofline"] = result.roofline;
  return object;
}

nlohmann::json matrix_json(const std::vector<MatrixRow>& rows,
                           const std::vector<ChosenChain>& chains, const DeviceInfo& device) {
  auto chosen = nlohmann::json::array();
  for (const auto& [chain, answer, instead] : chains) {
    chosen.push_back({{"chain", chain.key()},
                      {"alternative", answer.config.variant},
                      {"origin", to_string(answer.origin)}});
  }
  auto problems = nlohmann::json::array();
  for (const MatrixRow& row : rows) {
    auto ways = nlohmann::json::array(), absent = nlohmann::json::array();
    for (const MatrixWay* way : fastest_first(row)) ways.push_back(way_json(row, *way));
    for (const auto& [variant, why] : row.absent)
      absent.push_back({{"variant", variant}, {"reason", why}});
    problems.push_back({{"operations", row.names},
                        {"tokens", row.tokens},
                        {"count", row.count},
                        {"problem", row.problem.key()},
                        {"ways", ways},
                        {"absent", absent}});
  }
  return {{"format", "greta-run matrix 1"},
          {"device", device.id()},
          {"name", device.name},
          {"problems", problems},
          {"chains", chosen}};
}

void export_rows(const std::vector<MatrixRow>& rows, const std::filesystem::path& file) {
  std::vector<MeasuredResult> results;
  for (const MatrixRow& row : rows) {
    for (const MatrixWay& way : row.ways) results.push_back(way.result);
  }
  const auto written = export_csv(file, results);
  if (!written) throw CommandError(exit_failed, "--export " + written.failure().message);
  tell(fmt::format("{} in {}", format_count(static_cast<std::int64_t>(results.size()), "row"),
                   file.string()));
}

/// Measures all rows in a worker process.
void measure_rows(std::vector<MatrixRow>& rows, WorkerEvaluator& evaluator,
                  const MatrixOptions& options) {
  const bool live = isatty(STDERR_FILENO) != 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (live) {
      show_below(stderr, {fmt::format("{} of {}: {}", i + 1, rows.size(), rows[i].problem.key())});
    }
    measure(rows[i], evaluator, options);
    if (stop_requested()) throw CommandError(exit_failed, "interrupted");
  }
  if (live) show_below(stderr, {});
}

}  // namespace

CLI::Option* add_matrix_options(CLI::App& command, MatrixChoice& choice) {
  CLI::Option* const matrix = command.add_flag(
      "--matrix", choice.wanted,
      "Check and time each operation of the prompt's last pass and of decoding in each variant, "
      "with the best known configuration of each");
  add_number(command, "--seconds", choice.seconds,
             "With --matrix: time limit in seconds of the rounds in which a problem is timed",
             {.least = 0, .exclusive = true})
      ->type_name("SECONDS")
      ->capture_default_str()
      ->needs(matrix);
  return matrix;
}

std::vector<MatrixRow> matrix_rows(Runtime& runtime, const LlamaConfig& config, DType dtype,
                                   const LlamaOptions& options,
                                   std::span<const std::int64_t> passes) {
  std::vector<MatrixRow> rows;
  for (const std::int64_t tokens : passes) {
    for (const RecordedProblem& recorded :
         llama_operations(runtime, config, dtype, options, tokens)) {
      auto row = std::find_if(rows.begin(), rows.end(), [&](const MatrixRow& known) {
        return known.tokens == tokens && known.problem == recorded.problem;
      });
      if (row == rows.end()) {
        row = rows.insert(rows.end(), MatrixRow{.tokens = tokens, .problem = recorded.problem});
        const auto runs = runtime.answer(recorded.problem);
        if (!runs) throw CommandError(exit_failed, runs.failure().message);
        add_ways(*row, runtime.lookup(), *runs);
      }
      ++row->count;
      const std::string name = name_of_operation(recorded.label);
      if (std::find(row->names.begin(), row->names.end(), name) == row->names.end())
        row->names.push_back(name);
    }
  }
  return rows;
}

std::vector<ChosenChain> matrix_chains(Runtime& runtime, const LlamaConfig& config, DType dtype,
                                       const LlamaOptions& options,
                                       std::span<const std::int64_t> passes) {
  std::vector<ChosenChain> chains;
  for (const std::int64_t tokens : passes) {
    for (ChosenChain& one : llama_chains(runtime, config, dtype, options, tokens)) {
      if (std::find(chains.begin(), chains.end(), one) == chains.end()) {
        chains.push_back(std::move(one));
      }
    }
  }
  return chains;
}

int run_matrix(std::vector<MatrixRow> rows, const RuntimeChoice& runtime,
               const MatrixChoice& choice) {
  catch_interrupts();
  const auto selected = select_watched(runtime);
  const DeviceInfo& device = selected.front().info;
  EvaluatorOptions options;
  options.device = device.id();
  options.cache_directory = default_cache_directory();
  options.seed = choice.seed;
  options.vendor = allows(runtime.allow, "vendor");
  options.stop = &stop_requested();
  MatrixOptions matrix;
  matrix.seed = choice.seed;
  matrix.seconds = choice.seconds;
  matrix.limits.run_s = static_cast<double>(runtime.patience_s);
  if (const auto own = lookup_files(runtime).own) {
    const TunedDb db = TunedDb::open(*own, TunedDb::Mode::read_only);
    options.avoid = avoided_on(device, db, runtime.allow_unsafe);
    matrix.ceilings = db.ceilings(device.fingerprint());
  }
  std::vector<CardLock> locks;
  if (!choice.no_lock) locks = lock_cards(selected, "greta-run");
  WorkerEvaluator evaluator(worker_command(), options);
  measure_rows(rows, evaluator, matrix);
  if (choice.json) {
    print_json(matrix_json(rows, choice.chains, device));
  } else {
    const std::string chains = chains_table(choice.chains);
    print_text(matrix_table(rows) + (chains.empty() ? "" : "\n" + chains) + absent_text(rows));
  }
  if (!choice.export_file.empty()) export_rows(rows, choice.export_file);
  std::size_t failed = 0, all = 0;
  for (const MatrixRow& row : rows) {
    for (const MatrixWay& way : row.ways) failed += way.result.failure ? 1 : 0;
    all += row.ways.size();
  }
  if (failed > 0) throw CommandError(exit_failed, fmt::format("{} of {} failed", failed, all));
  return exit_done;
}

}  // namespace greta::tuner::cli
