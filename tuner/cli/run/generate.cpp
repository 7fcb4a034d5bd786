#include "tuner/cli/run/generate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/pipeline/llama/needs.hpp"
#include "runtime/pipeline/models/quantise.hpp"
#include "tuner/cli/model/packing_option.hpp"
#include "tuner/cli/model/quantize_option.hpp"
#include "tuner/cli/program/interrupt.hpp"
#include "tuner/cli/program/tool.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void write_generated(const std::string& text) {
  print_text(text);
  if (std::ferror(stdout) != 0 || std::fflush(stdout) != 0) {
    throw CommandError(exit_failed, "the text can't be written to standard output");
  }
}

}  // namespace

Generation::Generation(const GenerateOptions& options)
    : options_(options), model_(open_model(options.model)) {
  tokenizer_ = open_tokenizer(options.tokenizer, model_);
  encode_prompt();
  runtime_ = open_runtime(options.runtime);
  const DeviceInfo& device = runtime_->device().info();
  LlamaOptions llama;
  llama.capacity = wanted_capacity();
  llama.graph = !options.no_graph;
  llama.sample = samples_on_device(options);
  llama.penalties = options.sampler.penalises();
  const DType dtype = run_dtype(options.runtime, model_.weights.embedding.dtype, device);
  apply_quantisation(options.quantize, model_, dtype);
  tell_idle_permission(options.runtime.allow, model_.config, dtype);
  const auto prompt = static_cast<std::int64_t>(prompt_.size());
  packing_ = apply_packing(*runtime_, model_.config, dtype,
                           passes_of_text(prompt, options.tokens, llama.capacity),
                           options.runtime.packing);
  llama_needs(*runtime_, model_.config, dtype, llama, prompt).check(device);
  runner_ =
      std::make_unique<LlamaRunner>(*runtime_, upload_weights(*runtime_, model_, dtype), llama);
  if (llama.sample) runner_->sample(options.sampler);
}

std::vector<CountedPass> passes_of_text(std::int64_t prompt_tokens, std::int64_t tokens,
                                        std::int64_t capacity) {
  std::vector<CountedPass> passes{{1, 1, static_cast<double>(std::min(tokens, capacity))}};
  for (const std::int64_t pass :
       llama_passes(prompt_tokens, capacity, LlamaOptions{}.most_tokens)) {
    passes.push_back({1, pass, 1});
  }
  return passes;
}

bool samples_on_device(const GenerateOptions& options) {
  const SamplerOptions& sampler = options.sampler;
  return (sampler.temperature > 0 || sampler.penalises()) && options.sample == "device";
}

void check_capacity(const GenerateOptions& options, const LlamaConfig& config,
                    std::int64_t prompt_tokens) {
  const std::int64_t most = config.max_positions;
  if (options.capacity == 0 || (options.capacity >= prompt_tokens && options.capacity <= most)) {
    return;
  }
  throw CommandError(exit_usage,
                     fmt::format("--capacity {}: must be between the prompt's {} tokens "
                                 "and the model's {}",
                                 options.capacity, prompt_tokens, most));
}

void Generation::encode_prompt() {
  try {
    prompt_ = tokenizer_->encode(options_.prompt, true);
  } catch (const Error& error) {
    throw CommandError(exit_usage, std::string("--prompt: ") + error.what());
  }
  const std::int64_t most = model_.config.max_positions;
  const auto count = static_cast<std::int64_t>(prompt_.size());
  if (count == 0) throw CommandError(exit_usage, "--prompt: gives no tokens");
  if (count > most) {
    throw CommandError(exit_usage,
                       fmt::format("--prompt: has {} tokens, the model takes {}", count, most));
  }
  check_capacity(options_, model_.config, count);
}

std::int64_t Generation::wanted_capacity() const {
  if (options_.capacity != 0) return options_.capacity;
  const auto prompt = static_cast<std::int64_t>(prompt_.size());
  const std::int64_t rest = std::min(options_.tokens, model_.config.max_positions - prompt);
  return llama_capacity(model_.config, prompt + rest);
}

std::int64_t Generation::room() const {
  // The last generated token needs no slot in the cache.
  return std::min(options_.tokens,
                  runner_->capacity() - static_cast<std::int64_t>(prompt_.size()) + 1);
}

bool Generation::ends(std::int32_t id) const {
  const auto& eos = model_.config.eos;
  return std::find(eos.begin(), eos.end(), id) != eos.end();
}

std::int32_t Generation::next(Sampler& sampler) const {
  if (options_.sampler.temperature <= 0 || samples_on_device(options_)) {
    const std::int32_t token = runner_->likeliest().front();
    if (token < 0 || !std::isfinite(runner_->largest_logit()))
      throw CommandError(exit_failed, invalid_logits);
    return token;
  }
  return sampler.next(runner_->logits());
}

void Generation::run() {
  catch_interrupts();
  Sampler sampler(samples_on_device(options_) ? SamplerOptions{} : options_.sampler);
  runner_->prepare(static_cast<std::int64_t>(prompt_.size()));
  auto start = Clock::now();
  runner_->feed(prompt_);
  prompt_s_ = seconds_since(start);
  TextStream stream(*tokenizer_, prompt_);
  const auto give = [&](const std::string& text) {
    text_ += text;
    if (!options_.json) write_generated(text);
  };
  if (!options_.json) write_generated(options_.prompt);
  start = Clock::now();
  while (static_cast<std::int64_t>(generated_.size()) < room() && !stop_requested()) {
    const std::int32_t id = next(sampler);
    if (ends(id)) break;
    generated_.push_back(id);
    give(stream.push(id));
    if (static_cast<std::int64_t>(generated_.size()) < room()) runner_->feed({&id, 1});
  }
  decode_s_ = seconds_since(start);
  give(stream.finish());
  if (!options_.json) write_generated("\n");
  if (stop_requested()) throw CommandError(exit_failed, "interrupted");
}

void Generation::report() const {
  // The prompt's pass gives the first token, and the last one that has room is not fed.
  const auto fed = std::min(static_cast<std::int64_t>(generated_.size()), room() - 1);
  const double rate = fed > 0 && decode_s_ > 0 ? static_cast<double>(fed) / decode_s_ : 0;
  if (options_.json) {
    print_json(nlohmann::json{{"format", "greta-run 1"},
                              {"device", runtime_->device().info().id()},
                              {"dtype", to_string(runner_->dtype())},
                              {"quantised", quantised_formats(runner_->config())},
                              {"prompt", options_.prompt},
                              {"prompt_ids", prompt_},
                              {"ids", generated_},
                              {"text", text_},
                              {"capacity", runner_->capacity()},
                              {"kernels_compiled", runtime_->kernels().compiled()},
                              {"kernels_loaded", runtime_->kernels().from_databases()},
                              {"time_to_first_token_s", prompt_s_},
                              {"tokens_per_s", rate}});
    return;
  }
  const bool full =
      static_cast<std::int64_t>(generated_.size()) == room() && room() < options_.tokens;
  const std::size_t loaded = runtime_->kernels().from_databases();
  const std::string kernels =
      loaded == 0 ? ""
                  : fmt::format("; {} of databases, {} compiled",
                                format_count(static_cast<std::int64_t>(loaded), "kernel"),
                                runtime_->kernels().compiled());
  const std::string formats = quantised_formats(runner_->config());
  print(stderr, "{}: {} in {} {}{}, first token after {}{}{}{}\n", runtime_->device().info().id(),
        format_count(static_cast<std::int64_t>(generated_.size()), "token"),
        format_time(1e6 * (prompt_s_ + decode_s_)), to_string(runner_->dtype()),
        formats.empty() ? "" : fmt::format(" with weights in {}", formats),
        format_time(1e6 * prompt_s_), rate > 0 ? fmt::format(", {:.1f} tokens/s", rate) : "",
        full ? fmt::format("; the KV cache of {} tokens is full", runner_->capacity()) : "",
        kernels);
}

}  // namespace greta::tuner::cli
