#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "tuner/cli/run/benched_model.hpp"
#include "tuner/cli/run/explain.hpp"
#include "tuner/measure/statistics.hpp"
#include "tuner/model/mix_timer.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/table.hpp"

namespace greta::tuner::cli {
namespace {

/// Serves a mix in each way.
class MixBench final : public BenchedModel {
 public:
  MixBench(const ModelBenchOptions& options, const LlamaConfig& config);
  void measure() override;
  std::string text() override;
  void explain(const ExplainVisit& visit) override;
  std::vector<MeasuredResult> results() override;

 private:
  struct Way {
    std::string kernels;
    bool graph = true;
    std::unique_ptr<MixTimer> timer;
  };

  const BatchMix& mix() const { return *options_.model.load.mix; }

  std::vector<Way> ways_;
};

MixBench::MixBench(const ModelBenchOptions& options, const LlamaConfig& config)
    : BenchedModel(options, config) {
  for_each_way([&](Runtime& runtime, const std::string& kernels, bool graph) {
    LlamaBatchOptions batch = batch_options(options_.model.load, config_);
    batch.graph = graph;
    ways_.push_back({kernels, graph,
                     std::make_unique<MixTimer>(runtime, *weights_, batch, mix(), options_.seed)});
  });
}

/// The ways alternate, after a run of each that warms up.
void MixBench::measure() {
  for (int round = 0; round <= options_.rounds; ++round) {
    for (const Way& way : ways_) {
      if (round == 1) way.timer->clear();
      way.timer->run();
    }
  }
}

std::string MixBench::text() {
  constexpr auto right = Table::Align::right;
  Table table({{"kernels"},
               {"graph"},
               {"total", right},
               {"prompt tok/s", right},
               {"decode tok/s", right},
               {"first token p50", right},
               {"p99", right},
               {"next token p50", right},
               {"p99", right}});
  const MixTimer& any = *ways_.front().timer;
  const auto fed = static_cast<double>(mix().prompt_tokens() - any.shared_tokens());
  const auto decoded = static_cast<double>(mix().generated_tokens() - mix().sequences());
  const auto quantiles = [](const std::vector<double>& us) {
    if (us.empty()) return std::pair<std::string, std::string>("-", "-");
    return std::pair(format_time(median(us)), format_time(quantile(us, 0.99)));
  };
  for (const Way& way : ways_) {
    const MixTimes& times = way.timer->times();
    const auto first = quantiles(times.first_token_us), next = quantiles(times.token_us);
    table.add({way.kernels, way.graph ? "on" : "off", time_cell(times.total_us),
               fmt::format("{:.0f}", 1e6 * fed / median(times.prompt_us)),
               decoded > 0 ? fmt::format("{:.1f}{}", 1e6 * decoded / median(times.decode_us),
                                         spread_text(times.decode_us))
                           : "-",
               first.first, first.second, next.first, next.second});
  }
  LlamaBatch& batch = ways_.front().timer->batch();
  std::int64_t passes = 0;
  for (const auto& [shape, count] : any.passes()) passes += count;
  return table.text() +
         fmt::format(
             "{}, up to {} at the same time: prompts of {} tokens, of which {} are shared, and "
             "{} generated tokens, in {}\n",
             format_count(mix().sequences(), "sequence"), batch.options().sequences,
             mix().prompt_tokens(), any.shared_tokens(), mix().generated_tokens(),
             passes == 1 ? "1 pass" : fmt::format("{} passes", passes)) +
         fmt::format("pages of {} tokens: at most {} of {} in use\n", batch.options().page,
                     any.most_pages(), batch.options().pages) +
         memory_text(batch.weight_memory(), batch.cache_memory(), batch.pass_memory());
}

void MixBench::explain(const ExplainVisit& visit) {
  for (const Way& way : ways_) {
    if (!way.graph) continue;
    MixPassTimer passes(way.kernels == "default" ? *untuned_ : *tuned_, *weights_,
                        batch_options(options_.model.load, config_), mix(), options_.seed);
    for (const LoadPass& pass : passes.passes()) {
      const PipelineGraph& graph = passes.ready(pass);
      const auto times = graph.time(passes.queue()).value();
      visit(way.kernels,
            fmt::format("{} pass of {} x {}, {} times", to_string(pass.phase), pass.shape.batch,
                        format_count(pass.shape.tokens, "token"), pass.times),
            graph, times);
    }
  }
}

std::vector<MeasuredResult> MixBench::results() {
  std::vector<MeasuredResult> all;
  const ModelLoad& load = options_.model.load;
  for (const Way& way : ways_) {
    const auto add = [&](const std::string& name, const std::vector<double>& samples) {
      if (samples.empty()) return;
      MeasuredResult one = result_of(way.kernels, way.graph, name, samples,
                                     {{"layers", config_.layers},
                                      {"batch", load.batch},
                                      {"sequences", mix().sequences()},
                                      {"prompt", mix().prompt_tokens()},
                                      {"generated", mix().generated_tokens()},
                                      {"page", load.page}});
      one.subject.problem.attributes.emplace_back(
          "mix", std::filesystem::path(options_.model.mix).filename().string());
      all.push_back(std::move(one));
    };
    const MixTimes& times = way.timer->times();
    add("model_mix", times.total_us);
    add("model_mix_prompt", times.prompt_us);
    add("model_mix_decode", times.decode_us);
    add("model_mix_first_token", times.first_token_us);
    add("model_mix_token", times.token_us);
  }
  return all;
}

}  // namespace

std::unique_ptr<BenchedModel> mix_bench(const ModelBenchOptions& options,
                                        const LlamaConfig& config) {
  return std::make_unique<MixBench>(options, config);
}

}  // namespace greta::tuner::cli
