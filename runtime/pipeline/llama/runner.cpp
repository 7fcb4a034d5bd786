#include "runtime/pipeline/llama/runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace greta {
namespace {

constexpr std::int64_t least_pass = 16;  ///< tokens of a pass that are more than one
constexpr std::int64_t least_capacity = 256;

std::int64_t power_of_two(std::int64_t least) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(least)));
}

LlamaOptions completed(LlamaOptions options, const LlamaConfig& config) {
  if (options.capacity == 0) options.capacity = config.max_positions;
  const auto refuse = [](std::string message) {
    throw Error(Failure{Status::invalid_argument, std::move(message), {}});
  };
  constexpr std::int64_t most_batch = 65536;
  if (options.batch < 1 || options.batch > most_batch) {
    refuse(fmt::format("batch {}: must be between 1 and {}", options.batch, most_batch));
  }
  if (options.most_tokens < 1) {
    refuse(fmt::format("a pass of {} tokens: must be at least 1", options.most_tokens));
  }
  if (options.capacity < 1 || options.capacity > config.max_positions) {
    refuse(fmt::format("a capacity of {} tokens: must be between 1 and the model's {}",
                       options.capacity, config.max_positions));
  }
  options.most_tokens = std::min(options.most_tokens, options.capacity);
  return options;
}

/// The pass that takes `count` tokens with least to spare, of at most `most` tokens.
std::int64_t pass_size(std::int64_t count, std::int64_t most) {
  if (count == 1) return 1;
  return std::min(std::max(power_of_two(count), least_pass), most);
}

}  // namespace

std::int64_t LlamaRunner::capacity_for(const LlamaConfig& config, std::int64_t tokens) {
  return std::min(config.max_positions, std::max(least_capacity, power_of_two(tokens)));
}

void LlamaRunner::check_memory(const DeviceInfo& device, const LlamaConfig& config, DType dtype,
                               const LlamaOptions& given) {
  const LlamaOptions options = completed(given, config);
  const std::uint64_t weights = weight_bytes(config, dtype);
  const std::uint64_t caches = cache_bytes(config, dtype, options.batch, options.capacity);
  if (weights + caches <= device.memory_bytes) return;
  const auto gib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / 0x1p30; };
  throw Error(Failure{
      Status::out_of_memory,
      fmt::format(
          "the model does not fit {}: weights of {:.2f} GiB and caches of {:.2f} GiB for {} "
          "tokens, of {:.2f} GiB",
          device.id(), gib(weights), gib(caches), options.capacity, gib(device.memory_bytes)),
      {}});
}

LlamaRunner::LlamaRunner(Runtime& runtime, LlamaDeviceWeights weights, const LlamaOptions& options)
    : runtime_(runtime),
      options_(completed(options, weights.config)),
      weights_(std::move(weights)),
      memory_(allocate_memory(runtime, weights_.config, weights_.dtype, options_.batch,
                              options_.capacity, options_.most_tokens)),
      queue_(runtime.queue().value()),
      likeliest_(static_cast<std::size_t>(options_.batch)) {}

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
  std::vector<std::int64_t> sizes;
  std::int64_t first = position_;
  while (count > 0) {
    // What is filled up must have slots, too.
    std::int64_t size = pass_size(count, options_.most_tokens);
    const std::int64_t room = options_.capacity - first;
    while (size > room) size = size > least_pass ? size / 2 : 1;
    sizes.push_back(size);
    first += std::min(size, count);
    count -= std::min(size, count);
  }
  return sizes;
}

const PipelineGraph& LlamaRunner::pass(std::int64_t tokens) {
  auto& graph = passes_[tokens];
  if (!graph) {
    Pipeline pipeline(runtime_);
    record_llama(pipeline, weights_, memory_, {options_.batch, tokens});
    PipelineOptions options;
    options.graph = options_.graph;
    graph = pipeline.finish(options).value();
  }
  return *graph;
}

void LlamaRunner::prepare(std::int64_t prompt_tokens) {
  for (const std::int64_t size : passes(prompt_tokens)) static_cast<void>(pass(size));
  static_cast<void>(pass(1));
}

void LlamaRunner::check_ids(std::span<const std::int32_t> ids) const {
  const auto refuse = [](std::string message) {
    throw Error(Failure{Status::invalid_argument, std::move(message), {}});
  };
  if (ids.empty()) refuse("there are no tokens to feed");
  const auto each = static_cast<std::int64_t>(ids.size()) / options_.batch;
  if (each * options_.batch != static_cast<std::int64_t>(ids.size())) {
    refuse(fmt::format("{} tokens are not as many for each of {} sequences", ids.size(),
                       options_.batch));
  }
  if (each > options_.capacity - position_) {
    refuse(fmt::format("{} tokens behind {} are more than the {} that there is room for", each,
                       position_, options_.capacity));
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

/// `stride`: from one sequence's first id to the next one's; `count`: ids of each, the rest of the
/// pass is filled up.
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
  }
  queue_->replay(graph).value();
  queue_->synchronize().value();
  const std::int32_t* const next = values(memory_.staged_likeliest);
  likeliest_.assign(next, next + shape.batch);
  position_ += count;
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

}  // namespace greta
