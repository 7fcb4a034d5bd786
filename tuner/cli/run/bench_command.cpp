#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/device/system/utc.hpp"
#include "runtime/pipeline/llama/needs.hpp"
#include "tuner/cli/model/model_options.hpp"
#include "tuner/cli/model/packing_option.hpp"
#include "tuner/cli/model/quantize_option.hpp"
#include "tuner/cli/options/device_options.hpp"
#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/program/interrupt.hpp"
#include "tuner/cli/program/revision.hpp"
#include "tuner/cli/run/benched_model.hpp"
#include "tuner/cli/run/commands.hpp"
#include "tuner/cli/run/explain.hpp"
#include "tuner/cli/run/matrix.hpp"
#include "tuner/measure/clocks.hpp"
#include "tuner/measure/statistics.hpp"
#include "tuner/model/model_timer.hpp"
#include "tuner/report/csv.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"
#include "tuner/report/table.hpp"

namespace greta::tuner::cli {
namespace {

/// One way to run the model.
struct Way {
  std::string kernels;  ///< "tuned", "default", "forced" with rules of --use
  bool graph = true;
  std::unique_ptr<ModelTimer> timer;
};

/// One run of the command for sequences of one length.
class ModelBench final : public BenchedModel {
 public:
  ModelBench(const ModelBenchOptions& options, LlamaConfig config);
  void measure() override;
  std::string text() override;
  void explain(const ExplainVisit& visit) override;
  std::vector<MeasuredResult> results() override;

 private:
  MeasuredResult result(const Way& way, const std::string& name,
                        const std::vector<double>& samples) const;

  std::vector<Way> ways_;
};

ModelBench::ModelBench(const ModelBenchOptions& options, LlamaConfig config)
    : BenchedModel(options, std::move(config)) {
  for_each_way([&](Runtime& runtime, const std::string& kernels, bool graph) {
    LlamaOptions llama = runner_options(options_.model.load, config_);
    llama.graph = graph;
    ways_.push_back({kernels, graph,
                     std::make_unique<ModelTimer>(runtime, *weights_, llama, options_.model.load,
                                                  options_.seed)});
  });
}

/// The ways alternate, so that disturbances affect all of them. The first round is a warm-up.
void ModelBench::measure() {
  constexpr std::int64_t warm_up_steps = 2;
  for (const Way& way : ways_) way.timer->warm_up(warm_up_steps);
  for (int i = 0; i < options_.rounds; ++i) {
    for (const Way& way : ways_) way.timer->round(options_.model.load.generated_tokens);
  }
}

MeasuredResult ModelBench::result(const Way& way, const std::string& name,
                                  const std::vector<double>& samples) const {
  const ModelLoad& load = options_.model.load;
  return result_of(way.kernels, way.graph, name, samples,
                   {{"layers", config_.layers},
                    {"batch", load.batch},
                    {"prompt", load.prompt_tokens},
                    {"generated", load.generated_tokens}});
}

std::vector<MeasuredResult> ModelBench::results() {
  std::vector<MeasuredResult> all;
  for (const Way& way : ways_) {
    const ModelTimes& times = way.timer->times();
    all.push_back(result(way, "model_prefill", times.prefill_us));
    all.push_back(result(way, "model_decode", times.decode_us));
    all.push_back(result(way, "model_prefill_device", times.prefill_device_us));
    all.push_back(result(way, "model_decode_device", times.decode_device_us));
    all.push_back(result(way, "model_replay_host", times.replay_host_us));
  }
  return all;
}

std::string ModelBench::text() {
  constexpr auto right = Table::Align::right;
  Table table({{"kernels"},
               {"graph"},
               {"first token", right},
               {"prompt tok/s", right},
               {"decode tok/s", right},
               {"prefill/layer", right},
               {"decode/layer", right},
               {"host/replay", right}});
  const auto layers = static_cast<double>(config_.layers);
  const auto batch = static_cast<double>(options_.model.load.batch);
  for (const Way& way : ways_) {
    const ModelTimes& times = way.timer->times();
    const double prefill = median(times.prefill_us), decode = median(times.decode_us);
    table.add({way.kernels, way.graph ? "on" : "off", time_cell(times.prefill_us),
               fmt::format(
                   "{:.0f}",
                   1e6 * batch * static_cast<double>(options_.model.load.prompt_tokens) / prefill),
               fmt::format("{:.1f}{}", 1e6 * batch / decode, spread_text(times.decode_us)),
               time_cell(times.prefill_device_us, layers),
               time_cell(times.decode_device_us, layers), time_cell(times.replay_host_us)});
  }
  const auto& runner = ways_.front().timer->runner();
  return table.text() +
         memory_text(runner.weight_memory(), runner.cache_memory(), runner.pass_memory());
}

void ModelBench::explain(const ExplainVisit& visit) {
  for (const Way& way : ways_) {
    if (!way.graph) continue;
    LlamaRunner& runner = way.timer->runner();
    const auto add = [&](std::int64_t tokens, const PipelineGraph& pass) {
      const auto times = pass.time(runner.queue()).value();
      visit(way.kernels, fmt::format("pass of {}", format_count(tokens, "token")), pass, times);
    };
    visit_passes(runner, way.timer->prompt(), add);
  }
}

std::string explanation(BenchedModel& model) {
  std::string text;
  model.explain([&](const std::string& kernels, const std::string& pass, const PipelineGraph& graph,
                    const std::vector<OperationTime>& times) {
    text += fmt::format("\n{}, {}:\n{}", kernels, pass, explain_text(graph, times));
  });
  if (!model.packing().empty()) text += "\n" + packing_table(model.packing());
  return text;
}

/// Returns the rows that --export writes, and the passes of --explain.
nlohmann::json bench_json(BenchedModel& model, bool explain) {
  auto rows = nlohmann::json::array(), passes = nlohmann::json::array();
  for (const MeasuredResult& one : model.results()) {
    const Problem& problem = one.subject.problem;
    nlohmann::json row{{"measurement", problem.op},
                       {"kernels", one.subject.origin == ResultOrigin::untuned  ? "default"
                                   : one.subject.origin == ResultOrigin::chosen ? "forced"
                                                                                : "tuned"},
                       {"dtype", to_string(problem.dtype)},
                       {"median_us", one.us.median},
                       {"low_us", one.us.low},
                       {"high_us", one.us.high},
                       {"p99_us", one.us.p99},
                       {"samples", one.count}};
    for (const auto& [name, value] : problem.attributes) row[name] = value;
    for (const auto& [name, value] : problem.dims) row[name] = value;
    rows.push_back(std::move(row));
  }
  if (explain) {
    model.explain([&](const std::string& kernels, const std::string& pass,
                      const PipelineGraph& graph, const std::vector<OperationTime>& times) {
      passes.push_back(explain_json(graph, times));
      passes.back().update({{"kernels", kernels}, {"pass", pass}});
    });
  }
  return {{"format", "greta-run bench 1"},
          {"device", model.device_id()},
          {"rows", std::move(rows)},
          {"passes", std::move(passes)}};
}

/// Measures the problems of the prompt's last pass and of decoding in each variant. Needs no
/// weights.
int bench_matrix(const ModelBenchOptions& options, const LlamaConfig& config) {
  std::vector<MatrixRow> rows;
  MatrixChoice matrix = options.matrix;
  {
    const auto runtime = open_runtime(options.runtime);
    const DType dtype =
        run_dtype(options.runtime, config.dtype.value_or(DType::f16), runtime->device().info());
    tell_idle_permission(options.runtime.allow, config, dtype);
    const ModelLoad& load = options.model.load;
    const LlamaOptions llama = runner_options(load, config);
    std::vector<std::int64_t> passes{
        llama_passes(load.prompt_tokens, llama.capacity, llama.most_tokens).back()};
    if (passes.front() != 1) passes.push_back(1);
    rows = matrix_rows(*runtime, config, dtype, llama, passes);
    matrix.chains = matrix_chains(*runtime, config, dtype, llama, passes);
    tell_unused_rules(*runtime);
  }
  matrix.seed = options.seed;
  return run_matrix(std::move(rows), options.runtime, matrix);
}

int bench(ModelBenchOptions options) {
  if (options.model.config.empty()) throw CommandError(exit_usage, "--config is missing");
  LlamaConfig config = read_architecture(options.model);
  apply_load(options.model, config);
  apply_quantisation(options.model.quantize, config);
  watch_device(options.runtime);
  const auto selected = select_watched(options.runtime);
  const std::filesystem::path& file = options.matrix.export_file;
  if (!file.empty()) check_csv("--export", file);
  if (options.matrix.wanted && options.model.load.mix) {
    throw CommandError(exit_usage, "--matrix: not with --batch-mix");
  }
  if (options.matrix.wanted) return bench_matrix(options, config);
  catch_interrupts();
  std::vector<CardLock> locks;
  if (!options.matrix.no_lock) locks = lock_cards(selected, "greta-run");
  std::optional<EndsAtOnce> measures(std::in_place);  // nothing is kept of a part
  const std::unique_ptr<BenchedModel> model = options.model.load.mix
                                                  ? mix_bench(options, config)
                                                  : std::make_unique<ModelBench>(options, config);
  model->measure();
  if (options.matrix.json) {
    print_json(bench_json(*model, options.explain));
  } else {
    print_text(model->text());
    if (options.explain) print_text(explanation(*model));
  }
  measures.reset();
  model->tell_unused();
  if (file.empty()) return exit_done;
  const auto written = export_csv(file, model->results());
  if (!written) throw CommandError(exit_failed, "--export " + written.failure().message);
  return exit_done;
}

}  // namespace

void add_bench_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "bench", "Time an architecture with random weights: tuned and default, graphs on and off");
  auto options = std::make_shared<ModelBenchOptions>();
  add_architecture_options(*command, options->model);
  add_whole_number(*command, "--rounds", options->rounds,
                   "Number of prompts for each way to run the model", 1, 1'000'000)
      ->capture_default_str();
  add_seed(*command, options->seed, "Seed of weights and prompts");
  command->add_option("--export", options->matrix.export_file, "Append rows to a CSV file");
  auto* explain =
      command->add_flag("--explain", options->explain,
                        "Print each operation's configuration, its origin, speedup and time");
  add_matrix_options(*command, options->matrix)->excludes(explain);
  command->add_flag("--json", options->matrix.json, "Print JSON");
  command->add_flag("--no-lock", options->matrix.no_lock,
                    "Don't wait for another tool that measures on the same card");
  add_runtime_options(*command, options->runtime);
  command->callback([&action, options] { action = [options] { return bench(*options); }; });
}

}  // namespace greta::tuner::cli
