#include "runtime/pipeline/llama/runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/pipeline/compute/refuse.hpp"

namespace greta::runtime {
LlamaRunner::LlamaRunner(Runtime& runtime, LlamaDeviceWeights weights, const LlamaOptions& options)
    : runtime_(runtime),
      options_(options.for_model(weights.config)),
      weights_(std::move(weights)),
      memory_(allocate_memory(runtime, weights_, LlamaMemorySizes::of(weights_.config, options_))),
      queue_(runtime.queue().value()),
      history_(memory_),
      likeliest_(static_cast<std::size_t>(options_.batch)) {
  if (options_.sample) sample({});
}

LlamaRunner::~LlamaRunner() = default;

std::uint64_t LlamaRunner::cache_memory() const {
  return cache_bytes(weights_.config, weights_.dtype, options_.batch, options_.capacity);
}

std::uint64_t LlamaRunner::pass_memory() const {
  std::uint64_t bytes = 0;
  for (const auto& [tokens, graph] : passes_) {
    bytes += graph->memory().arena + graph->memory().workspace;
  }
  return bytes;
}

std::vector<std::int64_t> LlamaRunner::passes(std::int64_t count) const {
  return llama_passes(count, options_.capacity - position_, options_.most_tokens);
}

const PipelineGraph& LlamaRunner::pass(std::int64_t tokens) {
  auto& graph = passes_[tokens];
  if (!graph) {
    Pipeline pipeline(runtime_);
    const LlamaPassShape shape{options_.batch, tokens};
    record_llama(pipeline, weights_, memory_, shape);
    graph = pipeline.finish(pass_options(shape, options_.graph)).value();
  }
  return *graph;
}

void LlamaRunner::prepare(std::int64_t prompt_tokens) {
  for (const std::int64_t size : passes(prompt_tokens)) static_cast<void>(pass(size));
  static_cast<void>(pass(1));
}

void LlamaRunner::check_ids(std::span<const std::int32_t> ids) const {
  if (ids.empty()) refuse("there are no tokens to feed");
  const auto each = static_cast<std::int64_t>(ids.size()) / options_.batch;
  if (each * options_.batch != static_cast<std::int64_t>(ids.size())) {
    refuse(fmt::format("{} tokens are not as many for each of {} sequences", ids.size(),
                       options_.batch));
  }
  if (each > options_.capacity - position_) {
    refuse(fmt::format("{} tokens after {} are more than the KV capacity of {}", each, position_,
                       options_.capacity));
  }
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= weights_.config.vocab) {
      refuse(fmt::format("token {} is outside of the vocabulary of {}", id, weights_.config.vocab));
    }
  }
}

void LlamaRunner::feed(std::span<const std::int32_t> ids) {
  check_ids(ids);
  const auto each = static_cast<std::int64_t>(ids.size()) / options_.batch;
  std::int64_t first = 0;
  for (const std::int64_t size : passes(each)) {
    const std::int64_t count = std::min(size, each - first);
    run_pass(pass(size), ids.subspan(static_cast<std::size_t>(first)), each, {options_.batch, size},
             count);
    first += count;
  }
}

/// `stride` is the distance between the first ids of two sequences. `count` is the number of ids
/// per sequence; the rest of the pass is padding.
void LlamaRunner::run_pass(const PipelineGraph& graph, std::span<const std::int32_t> ids,
                           std::int64_t stride, const LlamaPassShape& shape, std::int64_t count) {
  const LlamaInputs staged(memory_.staged_inputs, shape);
  const auto values = [](const Tensor& t) { return reinterpret_cast<std::int32_t*>(t.host()); };
  const auto position = static_cast<std::int32_t>(position_);
  const auto tokens = static_cast<std::int32_t>(shape.tokens);
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    const std::int64_t row = b * shape.tokens;
    for (std::int64_t t = 0; t < shape.tokens; ++t) {
      const auto from = static_cast<std::size_t>(b * stride + t);
      values(staged.ids)[row + t] = t < count ? ids[from] : 0;
      values(staged.positions)[row + t] = position + static_cast<std::int32_t>(t);
    }
    values(staged.slot)[b] = position;
    values(staged.lengths)[b] = position + tokens;
    values(staged.last)[b] = static_cast<std::int32_t>(row + count - 1);
    std::int32_t* const seeds = values(staged.seeds) + 3 * b;
    seeds[0] = static_cast<std::int32_t>(seed_);
    seeds[1] = static_cast<std::int32_t>((seed_ >> 32) + static_cast<std::uint64_t>(b));
    seeds[2] = position + static_cast<std::int32_t>(count);
    history_.append(
        *queue_, b, 0, position_,
        ids.subspan(static_cast<std::size_t>(b * stride), static_cast<std::size_t>(count)));
  }
  queue_->replay(graph).value();
  queue_->synchronize().value();
  const std::int32_t* const next = values(memory_.likeliest);
  likeliest_.assign(next, next + shape.batch);
  position_ += count;
}

void LlamaRunner::sample(const SamplerOptions& options) {
  set_sampling(runtime_, memory_, options);
  seed_ = options.seed;
}

float LlamaRunner::largest_logit(std::int64_t sequence) const {
  const std::int64_t token = likeliest_.at(static_cast<std::size_t>(sequence));
  const Tensor one = memory_.logits.slice(0, sequence, 1).slice(1, token, 1);
  float value = 0;
  runtime_.download(one, std::as_writable_bytes(std::span(&value, 1))).value();
  return value;
}

std::vector<float> LlamaRunner::logits() const {
  std::vector<float> all(static_cast<std::size_t>(memory_.logits.shape().elements()));
  runtime_.download(memory_.logits, std::as_writable_bytes(std::span(all))).value();
  return all;
}

}  // namespace greta::runtime
