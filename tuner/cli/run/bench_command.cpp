#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "runtime/device/system/utc.hpp"
#include "runtime/pipeline/llama/needs.hpp"
#include "tuner/cli/model/model_options.hpp"
#include "tuner/cli/options/device_options.hpp"
#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/program/interrupt.hpp"
#include "tuner/cli/program/revision.hpp"
#include "tuner/cli/run/commands.hpp"
#include "tuner/cli/run/explain.hpp"
#include "tuner/cli/run/matrix.hpp"
#include "tuner/measure/clocks.hpp"
#include "tuner/measure/statistics.hpp"
#include "tuner/report/csv.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"
#include "tuner/report/table.hpp"

namespace greta::tuner::cli {
namespace {

struct BenchOptions {
  RuntimeChoice runtime;
  ArchitectureChoice model;
  int rounds = 5;
  std::uint64_t seed = 1;
  bool explain = false;
  MatrixChoice matrix;
};

/// One way to run the model.
struct Way {
  std::string kernels;  ///< "tuned", "default", "forced" with rules of --use
  ResultOrigin origin;  ///< winner or untuned
  bool graph = true;
  std::unique_ptr<ModelTimer> timer;
};

/// One run of the command.
class ModelBench {
 public:
  ModelBench(const BenchOptions& options, LlamaConfig config);
  void measure();
  std::string text();
  /// Returns the operations of a prompt's last pass and of a token's pass, with graphs.
  std::string explanation();
  std::vector<MeasuredResult> results();
  /// Reports rules that decided about nothing.
  void tell_unused() const {
    if (tuned_) tell_unused_rules(*tuned_);
  }

 private:
  /// Returns what runs beside default configurations: "tuned", "forced"; empty: nothing.
  std::string beside_default() const;
  void add_ways(Runtime& runtime, const LlamaDeviceWeights& weights, const std::string& kernels);
  MeasuredResult result(const Way& way, const std::string& name,
                        const std::vector<double>& samples) const;

  BenchOptions options_;
  LlamaConfig config_;
  LlamaOptions llama_;
  std::string date_ = utc_now();
  std::unique_ptr<Runtime> untuned_, tuned_;
  std::optional<LlamaDeviceWeights> weights_;
  std::vector<Way> ways_;
};

ModelBench::ModelBench(const BenchOptions& options, LlamaConfig config)
    : options_(options), config_(std::move(config)) {
  RuntimeChoice untuned = options.runtime;
  untuned.untuned = true;
  untuned.use.clear();
  untuned_ = open_runtime(untuned);
  Device& device = untuned_->device();
  const DType dtype = run_dtype(options.runtime, config_.dtype.value_or(DType::f16), device.info());
  llama_.batch = options.model.load.batch;
  llama_.capacity = llama_capacity(config_, options.model.load.tokens());
  const std::int64_t ways = beside_default().empty() ? 2 : 4;
  llama_needs(*untuned_, config_, dtype, llama_, options.model.load.prompt_tokens, ways)
      .check(device.info());
  weights_ = random_weights(*untuned_, config_, dtype, options.seed);
  if (const std::string kernels = beside_default(); !kernels.empty()) {
    tuned_ = open_beside(*untuned_, lookup_files(options.runtime), options.runtime);
    add_ways(*tuned_, *weights_, kernels);
  }
  add_ways(*untuned_, *weights_, "default");
}

std::string ModelBench::beside_default() const {
  if (!options_.runtime.use.empty()) return "forced";
  return options_.runtime.untuned ? "" : "tuned";
}

void ModelBench::add_ways(Runtime& runtime, const LlamaDeviceWeights& weights,
                          const std::string& kernels) {
  const auto origin = kernels == "default"  ? ResultOrigin::untuned
                      : kernels == "forced" ? ResultOrigin::chosen
                                            : ResultOrigin::winner;
  for (const bool graph : {true, false}) {
    LlamaOptions llama = llama_;
    llama.graph = graph;
    ways_.push_back({kernels, origin, graph,
                     std::make_unique<ModelTimer>(runtime, weights, llama, options_.model.load,
                                                  options_.seed)});
  }
}

/// The ways alternate, so that disturbances affect all of them. The first round is a warm-up.
void ModelBench::measure() {
  constexpr std::int64_t warm_up_steps = 2;
  for (const Way& way : ways_) way.timer->warm_up(warm_up_steps);
  for (int i = 0; i < options_.rounds && !stop_requested(); ++i) {
    for (const Way& way : ways_) way.timer->round(options_.model.load.generated_tokens);
  }
  if (stop_requested()) throw CommandError(exit_failed, "interrupted");
}

MeasuredResult ModelBench::result(const Way& way, const std::string& name,
                                  const std::vector<double>& samples) const {
  const ModelLoad& load = options_.model.load;
  const std::string model = std::filesystem::path(options_.model.config).filename().string();
  MeasuredResult result;
  result.subject = {
      .problem = {.op = name,
                  .dtype = weights_->dtype,
                  .out_dtype = weights_->dtype,
                  .attributes = {{"model", model}, {"graph", way.graph ? "on" : "off"}},
                  .dims = {{"layers", config_.layers},
                           {"batch", load.batch},
                           {"prompt", load.prompt_tokens},
                           {"generated", load.generated_tokens}}},
      .origin = way.origin,
      .cache = CacheState::warm};
  if (!options_.model.quantize.empty()) {
    result.subject.problem.attributes.emplace_back("quantize", options_.model.quantize);
  }
  const DeviceInfo& device = untuned_->device().info();
  result.subject.set_device(device);
  const Interval interval = median_interval(samples, 0.95);
  const double typical = median(samples);
  result.us = {.median = typical,
               .low = interval.low,
               .high = interval.high,
               .p99 = quantile(samples, 0.99),
               .spread_percent = 100 * (quantile(samples, 0.9) - quantile(samples, 0.1)) / typical};
  result.count = samples.size();
  result.date = date_;
  result.clocks = read_conditions(device.card.pci_address).clocks;
  result.samples.blocks_us = {samples};
  return result;
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

/// Returns a median divided by `parts`, with half the width of its 95 % interval.
std::string time_cell(const std::vector<double>& samples, double parts = 1) {
  const Interval interval = median_interval(samples, 0.95);
  return format_time(median(samples) / parts, interval.low / parts, interval.high / parts);
}

/// Returns half the width of the median's 95 % interval: "0.5 %".
std::string half_width(const std::vector<double>& samples) {
  const Interval interval = median_interval(samples, 0.95);
  return format_share((interval.high - interval.low) / 2 / median(samples));
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
               fmt::format("{:.1f} ± {}", 1e6 * batch / decode, half_width(times.decode_us)),
               time_cell(times.prefill_device_us, layers),
               time_cell(times.decode_device_us, layers), time_cell(times.replay_host_us)});
  }
  const auto& runner = ways_.front().timer->runner();
  const MemoryStatistics memory = untuned_->device().memory();
  return table.text() +
         fmt::format("memory: {} weights, {} cache, {} passes; {} at most for all ways together\n",
                     format_bytes(static_cast<double>(runner.weight_memory())),
                     format_bytes(static_cast<double>(runner.cache_memory())),
                     format_bytes(static_cast<double>(runner.pass_memory())),
                     format_bytes(static_cast<double>(memory.peak_bytes)));
}

std::string ModelBench::explanation() {
  std::string text;
  for (const Way& way : ways_) {
    if (!way.graph) continue;
    LlamaRunner& runner = way.timer->runner();
    const auto add = [&](std::int64_t tokens, const PipelineGraph& pass) {
      const auto times = pass.time(runner.queue()).value();
      text += fmt::format("\n{}, pass of {}:\n{}", way.kernels, format_count(tokens, "token"),
                          explain_text(pass, times));
    };
    visit_passes(runner, way.timer->prompt(), add);
  }
  return text;
}

/// Measures the problems of the prompt's last pass and of decoding in each variant. Needs no
/// weights.
int bench_matrix(const BenchOptions& options, const LlamaConfig& config) {
  std::vector<MatrixRow> rows;
  MatrixChoice matrix = options.matrix;
  {
    const auto runtime = open_runtime(options.runtime);
    const DType dtype =
        run_dtype(options.runtime, config.dtype.value_or(DType::f16), runtime->device().info());
    const ModelLoad& load = options.model.load;
    LlamaOptions llama;
    llama.batch = load.batch;
    llama.capacity = llama_capacity(config, load.tokens());
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

int bench(BenchOptions options) {
  if (options.model.config.empty()) throw CommandError(exit_usage, "--config is missing");
  LlamaConfig config = read_architecture(options.model);
  apply_load(options.model, config);
  apply_quantisation(options.model.quantize, config);
  watch_device(options.runtime);
  const auto selected = select_watched(options.runtime);
  const std::filesystem::path& file = options.matrix.export_file;
  if (!file.empty()) check_csv("--export", file);
  if (options.matrix.wanted) return bench_matrix(options, config);
  if (options.matrix.json) throw CommandError(exit_usage, "--json: needs --matrix");
  catch_interrupts();
  std::vector<CardLock> locks;
  if (!options.matrix.no_lock) locks = lock_cards(selected, "greta-run");
  ModelBench model(options, config);
  model.measure();
  print_text(model.text());
  if (options.explain) print_text(model.explanation());
  model.tell_unused();
  if (file.empty()) return exit_done;
  const auto written = export_csv(file, model.results());
  if (!written) throw CommandError(exit_failed, "--export " + written.failure().message);
  return exit_done;
}

}  // namespace

void add_bench_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "bench", "Time an architecture with random weights: tuned and default, graphs on and off");
  auto options = std::make_shared<BenchOptions>();
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
  command->add_flag("--json", options->matrix.json, "With --matrix: print JSON");
  command->add_flag("--no-lock", options->matrix.no_lock,
                    "Don't wait for another tool that measures on the same card");
  add_runtime_options(*command, options->runtime);
  command->callback([&action, options] { action = [options] { return bench(*options); }; });
}

}  // namespace greta::tuner::cli
