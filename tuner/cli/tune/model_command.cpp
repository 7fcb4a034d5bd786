#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <mutex>

#include "runtime/device/system/utc.hpp"
#include "runtime/device/text/printable.hpp"
#include "tuner/cli/model/model_options.hpp"
#include "tuner/cli/model/packing_option.hpp"
#include "tuner/cli/model/quantize_option.hpp"
#include "tuner/cli/options/device_options.hpp"
#include "tuner/cli/options/tuning_options.hpp"
#include "tuner/cli/program/interrupt.hpp"
#include "tuner/cli/program/overrun_watch.hpp"
#include "tuner/cli/program/terminal.hpp"
#include "tuner/cli/tune/commands.hpp"
#include "tuner/cli/tune/task_list.hpp"
#include "tuner/model/model_tuner.hpp"
#include "tuner/report/csv.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"
#include "tuner/report/table.hpp"

namespace greta::tuner::cli {
namespace {

/// What begins before the budget ends may take this long until the tool ends in any case.
constexpr std::chrono::seconds most_overrun{5};
/// What an orderly end may take after an interrupt was announced. What was kept is stored already.
constexpr std::chrono::seconds interrupt_patience{1};

struct ModelOptions {
  TuningOptions tuning;
  std::string path;  ///< a model with weights; empty: an architecture
  ArchitectureChoice model;
  std::string dtype;
  std::string packing = "rows";  ///< of quantised matrices: rows, panels or any
};

/// Prints the events of a model's tuning to standard error, and writes results to CSV files.
class ModelReport final : public ModelObserver {
 public:
  /// `budget` is that of a packing in words: "--budget 40s", or half of it.
  ModelReport(const TuningOptions& options, const ModelLoad& load, double budget_s,
              std::string budget)
      : options_(options),
        load_(load),
        budget_s_(budget_s),
        budget_(std::move(budget)),
        files_(options) {}

  void on_problems(const std::vector<ModelChange>& changes) override {
    const auto problems = format_count(static_cast<std::int64_t>(changes.size()), "problem");
    if (load_.mix) {
      tell(fmt::format("{} of {}, prompts of {} and {} generated tokens in all", problems,
                       format_count(load_.mix->sequences(), "sequence"), load_.mix->prompt_tokens(),
                       load_.mix->generated_tokens()));
      return;
    }
    tell(fmt::format("{} of a prompt of {} tokens and {} generated tokens", problems,
                     load_.prompt_tokens, load_.generated_tokens));
  }
  void on_plan(const TimePlan& plan, std::size_t problems, std::size_t chains) override {
    tell(
        fmt::format("{} tuned in about {:.0f} s, their winners and {} compared in the model in "
                    "about {:.0f} s: {:.0f} s in all",
                    format_count(static_cast<std::int64_t>(problems), "problem"), plan.tuning_s,
                    format_count(static_cast<std::int64_t>(chains), "alternative"),
                    plan.comparing_s, plan.total_s));
    if (plan.least_s > budget_s_) {
      tell(fmt::format(
          "--budget {} is shorter than the least that this model takes, {:.0f} s: what "
          "does not fit "
          "is skipped",
          options_.budget, plan.least_s * read_budget(options_.budget).amount() / budget_s_));
    }
  }
  void on_distribution(const Distribution& distribution) override {
    report_left_out(distribution, options_);
  }
  void on_result(const TaskResult& result) override { files_.add(result); }
  void write_page() const { files_.write_page(); }
  const std::string& budget() const { return budget_; }
  void on_change(const ModelChange& change) override {
    tell(fmt::format("trying {} in the model", change.problem.key()));
  }
  void on_chain(const ChainChange& change) override {
    tell(fmt::format("trying {}: {} in the model", change.chain.key(), change.alternative));
  }
  void on_begin(std::string_view what) override {
    const std::lock_guard lock(mutex_);
    running_ = what;
  }
  void on_phase(std::string_view what, double seconds, double since_s) override {
    {
      const std::lock_guard lock(mutex_);
      running_ = "what comes after " + std::string(what);
    }
    if (options_.verbose) tell(fmt::format("after {:.1f} s: {:.1f} s {}", since_s, seconds, what));
  }
  /// Says that the budget is over, and what does not end. May be called by any thread, also while
  /// another one is blocked at writing to stderr.
  void tell_overrun() const {
    const std::lock_guard lock(mutex_);
    const std::string line = fmt::format(
        "greta-tune: {} ended {} s ago, and {} has not ended since; what was kept before is stored "
        "in {}\n",
        budget_, most_overrun.count(), running_, options_.db.string());
    static_cast<void>(!write(STDERR_FILENO, line.data(), line.size()));
  }

 private:
  const TuningOptions& options_;
  const ModelLoad& load_;
  double budget_s_;  ///< of a packing
  std::string budget_;
  mutable std::mutex mutex_;
  std::string running_ = "waiting for the device";
  ResultFiles files_;
};

/// Converts the options, and reads the model. Throws CommandError.
ModelTunerOptions model_tuner_options(const ModelOptions& options) {
  if (options.path.empty() && options.model.config.empty()) {
    throw CommandError(exit_usage, "a model is needed: its folder or file, or --config");
  }
  if (!options.path.empty() && !options.model.config.empty()) {
    throw CommandError(exit_usage, fmt::format("--config {}: not with the model {}",
                                               options.model.config, options.path));
  }
  if (!options.path.empty()) check_exists("model", options.path);
  ModelTunerOptions tuner;
  tuner.tuner = tuner_options(options.tuning);
  tuner.rounded_weights = allows(options.tuning.allow, "rounded_weights");
  if (!options.path.empty()) tuner.weights = open_model(options.path);
  ArchitectureChoice model = options.model;
  tuner.config = tuner.weights ? tuner.weights->config : read_architecture(model);
  apply_load(model, tuner.config);
  tuner.load = model.load;
  DType own = tuner.config.dtype.value_or(DType::f16);
  if (tuner.weights) {
    tuner.weights->weights.layers.resize(static_cast<std::size_t>(tuner.config.layers));
    tuner.weights->config = tuner.config;
    own = tuner.weights->weights.embedding.dtype;
  }
  RuntimeChoice choice;
  choice.dtype = options.dtype;
  tuner.dtype = run_dtype(choice, own, select_devices(options.tuning.device).front().info);
  if (tuner.weights) {
    apply_quantisation(model.quantize, *tuner.weights, tuner.dtype);
    tuner.config = tuner.weights->config;
  } else {
    apply_quantisation(model.quantize, tuner.config);
  }
  tell_idle_permission(options.tuning.allow, tuner.config, tuner.dtype);
  return tuner;
}

std::string ratio_text(const Interval& ratio) {
  return fmt::format("{:.3f}x ({:.3f} to {:.3f})", ratio.estimate, ratio.low, ratio.high);
}

/// Returns a table of the alternatives of chains, empty if there are none.
std::string chains_text(const ModelResult& result) {
  constexpr auto right = Table::Align::right;
  if (result.chains.empty()) return "";
  Table table(
      {{"chain"}, {"alternative"}, {"instead of"}, {"phase"}, {"end to end", right}, {"kept"}});
  std::string remarks;
  for (const ChainChange& change : result.chains) {
    table.add({change.chain.key(), change.alternative, change.instead_of,
               std::string(to_string(change.phase)),
               change.end_to_end ? ratio_text(*change.end_to_end) : "-",
               change.kept               ? "yes"
               : change.replaced         ? "replaced"
               : change.end_to_end       ? "no"
               : !change.why_not.empty() ? "can't run"
               : change.out_of_time      ? "no time"
                                         : "unchanged"});
    if (change.why_not.empty()) continue;
    remarks += fmt::format("{}: {}: {}\n", change.chain.key(), change.alternative,
                           one_line(change.why_not));
  }
  return "\n" + table.text() + remarks;
}

std::string result_text(const ModelResult& result, const std::string& database) {
  constexpr auto right = Table::Align::right;
  Table table({{"problem"}, {"share", right}, {"micro", right}, {"end to end", right}, {"kept"}});
  for (const ModelChange& change : result.changes) {
    const bool known = change.winner && has_ratio(change.winner->winner);
    const auto micro = known ? ratio_text({.low = change.winner->winner.speedup_low,
                                           .high = change.winner->winner.speedup_high,
                                           .estimate = change.winner->winner.speedup})
                             : "-";
    table.add({change.problem.key(), format_share(change.share), micro,
               change.end_to_end ? ratio_text(*change.end_to_end) : "-",
               change.kept                             ? change.together ? "yes, together" : "yes"
               : change.kept_for_packing               ? "for --packing auto"
               : change.together                       ? "no, together"
               : change.out_of_time                    ? "no time"
               : change.of_chain && !change.end_to_end ? "not in the model"
               : change.end_to_end                     ? "no"
                                                       : "unchanged"});
  }
  const auto whole = result.whole ? fmt::format("{} the speed of default configurations",
                                                ratio_text(*result.whole))
                     : result.whole_out_of_time
                         ? "no time was left to compare it with default configurations"
                         : "runs default configurations; nothing makes it significantly faster";
  return table.text() + chains_text(result) +
         fmt::format("the model: {}\nkept in {}\n", whole, database);
}

/// Tunes the model with its matrices in one packing, and prints the result.
void tune_packed(const ModelOptions& options, const ModelTunerOptions& tuner_options,
                 Terminal& terminal, ModelReport& report) {
  const auto tuner = value_of(ModelTuner::open(tuner_options, terminal, report, stop_requested()));
  const ModelResult result = [&] {
    const OverrunWatch watch(
        std::chrono::duration<double>(tuner_options.tuner.budget.amount()) + most_overrun,
        [&report] { report.tell_overrun(); });
    return value_of(tuner->tune());
  }();
  print_text(result_text(result, options.tuning.db.string()));
  if (!options.tuning.quiet) {
    tell(fmt::format("{:.0f} s of {}", result.seconds, report.budget()));
  }
  if (std::fflush(stdout) != 0) {
    throw CommandError(exit_failed, "the report can't be written; kept winners are stored");
  }
  value_of(tuner->finish(result));
}

int tune_model(const ModelOptions& options) {
  ModelTunerOptions of_rows = model_tuner_options(options);
  if (options.tuning.json_lines)
    throw CommandError(exit_usage, "--json-lines: not with the command model");
  std::vector<std::pair<std::string, ModelTunerOptions>> runs;
  const bool any = options.packing == "any";
  if (any) {
    if (of_rows.tuner.budget.kind() != Budget::Kind::seconds) {
      throw CommandError(exit_usage,
                         fmt::format("--budget {}: must be a time", options.tuning.budget));
    }
    of_rows.keep_packings = true;
    of_rows.tuner.budget = of_rows.tuner.budget.part(0.5);
    runs.emplace_back("rows", of_rows);
  }
  runs.emplace_back(any ? "panels" : options.packing, std::move(of_rows));
  if (options.packing != "rows") {
    ModelTunerOptions& of_panels = runs.back().second;
    apply_panels(of_panels.config, options.packing);
    if (of_panels.weights) of_panels.weights->config = of_panels.config;
  }
  catch_interrupts(interrupt_patience);
  Terminal terminal(verbosity(options.tuning));
  const ModelTunerOptions& first = runs.front().second;
  ModelReport report(options.tuning, first.load, first.tuner.budget.amount(),
                     fmt::format("{}--budget {}", any ? "half of " : "", options.tuning.budget));
  for (const auto& [packing, tuner_options] : runs) {
    if (any) print_text(fmt::format("{}packing {}\n", packing == "rows" ? "" : "\n", packing));
    tune_packed(options, tuner_options, terminal, report);
  }
  report.write_page();
  return exit_done;
}

}  // namespace

void add_model_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "model", "Tune the problems of a model, and keep the winners that make it faster");
  auto options = std::make_shared<ModelOptions>();
  command->add_option(
      "model", options->path,
      "A Llama: a folder in the format of Hugging Face, a GGUF file, or a checkpoint of llama2.c");
  add_architecture_options(*command, options->model);
  command->add_option("--dtype", options->dtype, converted_types_text() + " [the model's, or f16]");
  add_tuned_packing_option(*command, options->packing);
  add_tuning_options(*command, options->tuning, "10m", {"vendor", "rounded_weights"});
  command->callback([&action, options] { action = [options] { return tune_model(*options); }; });
}

}  // namespace greta::tuner::cli
