#include "tuner/cli/run/batch_generation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "runtime/device/system/input_file.hpp"
#include "runtime/device/text/utf8.hpp"
#include "runtime/pipeline/compute/capture.hpp"
#include "runtime/pipeline/llama/batch.hpp"
#include "runtime/pipeline/llama/needs.hpp"
#include "runtime/pipeline/models/quantise.hpp"
#include "tuner/cli/model/packing_option.hpp"
#include "tuner/cli/model/quantize_option.hpp"
#include "tuner/cli/program/interrupt.hpp"
#include "tuner/cli/program/tool.hpp"
#include "tuner/measure/stopwatch.hpp"
#include "tuner/model/batch_mix.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

constexpr std::uint64_t most_bytes = 1 << 28;  // of the file of prompts

const char* name_of(SequenceEnd end) {
  switch (end) {
    case SequenceEnd::none:
      return "none";
    case SequenceEnd::end:
      return "end";
    case SequenceEnd::tokens:
      return "tokens";
    case SequenceEnd::capacity:
      return "capacity";
  }
  return "unknown";
}

/// A model on a device, and the prompts of a file.
class BatchGeneration {
 public:
  explicit BatchGeneration(const GenerateOptions& options);
  void run();
  void report() const;
  void record_mix() const;
  Runtime& runtime() { return *runtime_; }

 private:
  void read_prompts();
  LlamaBatchOptions batch_options() const;
  LlamaRequest request(std::size_t number) const;
  void check_logits(const LlamaBatch::Step& step) const;
  std::string text_of(std::size_t number) const;
  void write_ended();

  GenerateOptions options_;
  LlamaModel model_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::vector<std::string> prompts_;
  std::vector<std::vector<std::int32_t>> ids_;  ///< of the prompts
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<LlamaBatch> batch_;
  std::size_t written_ = 0;  ///< texts
  std::int64_t passes_ = 0;
  std::size_t most_sequences_ = 0;  ///< of a pass
  double seconds_ = 0;
};

BatchGeneration::BatchGeneration(const GenerateOptions& options)
    : options_(options), model_(open_model(options.model)) {
  tokenizer_ = open_tokenizer(options.tokenizer, model_);
  read_prompts();
  const LlamaBatchOptions batch = batch_options();
  std::vector<LlamaRequest> requests;
  for (std::size_t i = 0; i < ids_.size(); ++i) requests.push_back(request(i));
  std::set<LlamaPassShape> shapes;
  for (const auto& [shape, count] : count_passes(batch, requests)) shapes.insert(shape);
  runtime_ = open_runtime(options.runtime);
  const DeviceInfo& device = runtime_->device().info();
  const DType dtype = run_dtype(options.runtime, model_.weights.embedding.dtype, device);
  apply_quantisation(options.quantize, model_, dtype);
  tell_idle_permission(options.runtime.allow, model_.config, dtype);
  std::vector<CountedPass> passes;
  for (const auto& [shape, count] : count_passes(batch, requests)) {
    passes.push_back({shape.batch, shape.tokens, static_cast<double>(count)});
  }
  apply_packing(*runtime_, model_.config, dtype, passes, options.runtime.packing);
  llama_needs(*runtime_, model_.config, dtype, batch, shapes).check(device);
  batch_ = std::make_unique<LlamaBatch>(*runtime_, upload_weights(*runtime_, model_, dtype), batch);
  if (batch.sample) batch_->sample(options.sampler);
  batch_->prepare(shapes);
  for (LlamaRequest& one : requests) batch_->add(std::move(one));
}

/// Reads a prompt of each line that is not empty.
void BatchGeneration::read_prompts() {
  const auto text = read_file(options_.prompts, most_bytes);
  if (!text) throw CommandError(exit_usage, "--prompts " + text.failure().message);
  std::istringstream lines{std::string(without_byte_order_mark(*text))};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    const std::string where = fmt::format("--prompts {}:{}: ", options_.prompts, number);
    try {
      ids_.push_back(tokenizer_->encode(line, true));
    } catch (const Error& error) {
      throw CommandError(exit_usage, where + error.what());
    }
    const auto count = static_cast<std::int64_t>(ids_.back().size());
    const std::int64_t most =
        options_.capacity > 0 ? options_.capacity : model_.config.max_positions;
    if (count == 0 || count > most) {
      throw CommandError(exit_usage,
                         fmt::format("{}has {} tokens, {} takes {}", where, count,
                                     options_.capacity > 0 ? "--capacity" : "the model", most));
    }
    prompts_.push_back(std::move(line));
  }
  if (prompts_.empty()) {
    throw CommandError(exit_usage, fmt::format("--prompts {}: has no prompt", options_.prompts));
  }
}

LlamaBatchOptions BatchGeneration::batch_options() const {
  std::int64_t longest = 0;
  for (const auto& ids : ids_) longest = std::max(longest, static_cast<std::int64_t>(ids.size()));
  check_capacity(options_, model_.config, longest);
  LlamaBatchOptions batch;
  batch.sequences = std::min(options_.batch, static_cast<std::int64_t>(prompts_.size()));
  const std::int64_t rest = std::min(options_.tokens, model_.config.max_positions - longest);
  batch.capacity =
      options_.capacity > 0 ? options_.capacity : llama_capacity(model_.config, longest + rest);
  check_pages(options_.page, options_.pages,
              std::min(longest + options_.tokens - 1, batch.capacity));
  batch.page = options_.page;
  batch.pages = options_.pages;
  batch.graph = !options_.no_graph;
  batch.sample = samples_on_device(options_);
  batch.penalties = options_.sampler.penalises();
  return batch.for_model(model_.config);
}

/// The first sequence draws what the same prompt draws alone; the others have seeds of their own.
LlamaRequest BatchGeneration::request(std::size_t number) const {
  return {ids_[number], options_.tokens, model_.config.eos,
          options_.sampler.seed + (static_cast<std::uint64_t>(number) << 32)};
}

void BatchGeneration::check_logits(const LlamaBatch::Step& step) const {
  const std::vector<float> largest = batch_->largest_logits();
  for (std::size_t lane = 0; lane < largest.size(); ++lane) {
    if (!step.pass.lanes[lane].gives_token || std::isfinite(largest[lane])) continue;
    throw CommandError(exit_failed, invalid_logits);
  }
}

std::string BatchGeneration::text_of(std::size_t number) const {
  TextStream stream(*tokenizer_, ids_[number]);
  std::string text;
  for (const std::int32_t id : batch_->sequence(number).generated) text += stream.push(id);
  return text + stream.finish();
}

void BatchGeneration::write_ended() {
  while (written_ < prompts_.size() && batch_->sequence(written_).end != SequenceEnd::none) {
    print_text(prompts_[written_] + text_of(written_) + "\n");
    ++written_;
  }
  if (std::ferror(stdout) != 0 || std::fflush(stdout) != 0) {
    throw CommandError(exit_failed, "the text can't be written to standard output");
  }
}

void BatchGeneration::run() {
  catch_interrupts();
  const Stopwatch watch;
  while (!stop_requested()) {
    const auto step = batch_->step();
    if (!step) break;
    ++passes_;
    std::set<std::size_t> sequences;  // one that feeds a prompt has several lanes
    for (const BatchLane& lane : step->pass.lanes) sequences.insert(lane.sequence);
    most_sequences_ = std::max(most_sequences_, sequences.size());
    check_logits(*step);
    if (!options_.json) write_ended();
  }
  seconds_ = watch.seconds();
  if (stop_requested()) throw CommandError(exit_failed, "interrupted");
}

void BatchGeneration::report() const {
  std::int64_t generated = 0, shared = 0;
  nlohmann::json sequences = nlohmann::json::array();
  for (std::size_t i = 0; i < prompts_.size(); ++i) {
    const LlamaSequence& one = batch_->sequence(i);
    generated += static_cast<std::int64_t>(one.generated.size());
    shared += one.shared;
    sequences.push_back({{"prompt", prompts_[i]},
                         {"prompt_ids", ids_[i]},
                         {"ids", one.generated},
                         {"text", text_of(i)},
                         {"end", name_of(one.end)},
                         {"shared_tokens", one.shared}});
  }
  const double rate = seconds_ > 0 ? static_cast<double>(generated) / seconds_ : 0;
  const LlamaBatchOptions& batch = batch_->options();
  const std::int64_t most_pages = batch_->scheduler().most_pages();
  if (options_.json) {
    print_json(nlohmann::json{{"format", "greta-run batch 1"},
                              {"device", runtime_->device().info().id()},
                              {"dtype", to_string(batch_->dtype())},
                              {"quantised", quantised_formats(batch_->config())},
                              {"batch", batch.sequences},
                              {"capacity", batch.capacity},
                              {"page_size", batch.page},
                              {"pages", batch.pages},
                              {"most_pages", most_pages},
                              {"most_sequences", most_sequences_},
                              {"passes", passes_},
                              {"seconds", seconds_},
                              {"tokens_per_s", rate},
                              {"sequences", sequences}});
    return;
  }
  print(stderr,
        "{}: {} after {} in {} {}, {:.1f} tokens/s; up to {} at the same time, at most {} of {} "
        "pages of {} tokens, {} shared\n",
        runtime_->device().info().id(), format_count(generated, "token"),
        format_count(static_cast<std::int64_t>(prompts_.size()), "prompt"),
        format_time(1e6 * seconds_), to_string(batch_->dtype()), rate, most_sequences_, most_pages,
        batch.pages, batch.page, format_count(shared, "token"));
}

/// Writes the lengths of the sequences. Which prompts begin with the same tokens is not part of it.
void BatchGeneration::record_mix() const {
  BatchMix mix;
  for (std::size_t i = 0; i < prompts_.size(); ++i) {
    const LlamaSequence& one = batch_->sequence(i);
    const auto generated =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(one.generated.size()));
    const MixPart part{one.prompt_size(), generated, 1, 0};
    const auto known = std::find_if(mix.parts.begin(), mix.parts.end(), [&](const MixPart& other) {
      return other.prompt == part.prompt && other.generated == part.generated;
    });
    if (known != mix.parts.end()) {
      ++known->count;
    } else {
      mix.parts.push_back(part);
    }
  }
  std::ofstream file(options_.record_mix);
  file << model::text_of(mix);
  if (!file.flush()) {
    throw CommandError(exit_failed,
                       fmt::format("--record-mix {}: can't be written", options_.record_mix));
  }
}

}  // namespace

int generate_batch(const GenerateOptions& options) {
  BatchGeneration generation(options);
  if (!options.capture.empty()) generation.runtime().telemetry().set({true, true});
  generation.run();
  generation.report();
  if (!options.record_mix.empty()) generation.record_mix();
  tell_unused_rules(generation.runtime());
  if (!options.capture.empty()) {
    write_capture(options.capture, captured(generation.runtime())).value();
  }
  return exit_done;
}

}  // namespace greta::tuner::cli
