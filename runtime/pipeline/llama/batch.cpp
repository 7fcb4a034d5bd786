#include "runtime/pipeline/llama/batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace greta::runtime {
namespace {

std::int32_t* values(const Tensor& tensor) {
  return reinterpret_cast<std::int32_t*>(tensor.host());
}

}  // namespace

LlamaMemorySizes batch_memory_sizes(const LlamaConfig& config, const LlamaBatchOptions& options) {
  LlamaMemorySizes sizes{
      .cache = {options.pages + 1, config.kv_heads, options.page, config.head_dim},
      .capacity = options.pages_of_sequence() * options.page,
      .page = options.page,
      .sample = options.sample,
      .penalties = options.penalties};
  for (const LlamaPassShape& shape : llama_batch_shapes(options)) {
    sizes.sequences = std::max(sizes.sequences, shape.batch);
    sizes.rows = std::max(sizes.rows, shape.rows());
    sizes.inputs = std::max(sizes.inputs, shape.inputs());
  }
  return sizes;
}

LlamaBatch::LlamaBatch(Runtime& runtime, LlamaDeviceWeights weights,
                       const LlamaBatchOptions& options)
    : runtime_(runtime),
      options_(options.for_model(weights.config)),
      weights_(std::move(weights)),
      memory_(allocate_memory(runtime, weights_, batch_memory_sizes(weights_.config, options_))),
      queue_(runtime.queue().value()),
      history_(memory_),
      scheduler_(options_) {
  if (options_.sample) sample({});
}

LlamaBatch::~LlamaBatch() = default;

std::size_t LlamaBatch::add(LlamaRequest request) {
  for (const std::int32_t id : request.prompt) {
    if (id >= 0 && id < weights_.config.vocab) continue;
    throw Error(Failure{
        Status::invalid_argument,
        fmt::format("token {} is outside of the vocabulary of {}", id, weights_.config.vocab),
        {}});
  }
  return scheduler_.add(std::move(request));
}

void LlamaBatch::sample(const SamplerOptions& options) {
  set_sampling(runtime_, memory_, options);
}

void LlamaBatch::reset() {
  scheduler_ = BatchScheduler(options_);
  history_.disown();
}

const PipelineGraph& LlamaBatch::pass(const LlamaPassShape& shape) {
  auto& graph = passes_[shape];
  if (!graph) {
    Pipeline pipeline(runtime_);
    record_llama(pipeline, weights_, memory_, shape);
    graph = pipeline.finish(pass_options(shape, options_.graph)).value();
  }
  return *graph;
}

void LlamaBatch::prepare(const std::set<LlamaPassShape>& shapes) {
  for (const LlamaPassShape& shape : shapes) static_cast<void>(pass(shape));
}

/// Writes the inputs of a lane. One that is not used appends nothing and sees no key.
void LlamaBatch::fill_lane(const LlamaInputs& staged, const LlamaPassShape& shape,
                           std::int64_t lane, const BatchLane* used) {
  const std::int64_t row = lane * shape.tokens;
  const LlamaSequence* const sequence =
      used == nullptr ? nullptr : &scheduler_.sequences()[used->sequence];
  const std::int64_t first = used == nullptr ? 0 : used->first;
  const std::int64_t count = used == nullptr ? 0 : used->count;
  for (std::int64_t t = 0; t < shape.tokens; ++t) {
    // Padding repeats the last token: attention multiplies its values by 0, so they must be finite.
    const std::int64_t own = std::min(t, count - 1);
    values(staged.ids)[row + t] = own < 0 ? 0 : sequence->token(first + own);
    values(staged.positions)[row + t] = static_cast<std::int32_t>(first + t);
  }
  values(staged.slot)[lane] = static_cast<std::int32_t>(used == nullptr ? -shape.tokens : first);
  values(staged.lengths)[lane] =
      static_cast<std::int32_t>(used == nullptr ? 0 : first + shape.tokens);
  values(staged.last)[lane] = static_cast<std::int32_t>(row + std::max<std::int64_t>(count, 1) - 1);
  const std::uint64_t seed = sequence == nullptr ? 0 : sequence->request.seed;
  std::int32_t* const seeds = values(staged.seeds) + 3 * lane;
  seeds[0] = static_cast<std::int32_t>(seed);
  seeds[1] = static_cast<std::int32_t>(seed >> 32);
  seeds[2] = static_cast<std::int32_t>(first + count);
  const auto spare = static_cast<std::int32_t>(options_.pages);
  std::int32_t* const pages = values(staged.block_table) + shape.pages * lane;
  std::fill_n(pages, shape.pages, spare);
  if (sequence != nullptr)
    std::copy(sequence->lease.pages.begin(), sequence->lease.pages.end(), pages);
}

/// Appends a sequence's tokens to the history of its lane's row, which is rewritten if it had
/// another sequence.
void LlamaBatch::remember(std::int64_t lane, const BatchLane& used) {
  if (!memory_.history || !used.gives_token) return;
  const LlamaSequence& sequence = scheduler_.sequences()[used.sequence];
  const std::int64_t known = history_.size(lane, used.sequence);
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = known; i < used.first + used.count; ++i)
    tokens.push_back(sequence.token(i));
  history_.append(*queue_, lane, used.sequence, known, tokens);
}

std::optional<LlamaBatch::Step> LlamaBatch::step() {
  std::optional<BatchPass> next = scheduler_.next();
  if (!next) return std::nullopt;
  const LlamaPassShape& shape = next->shape;
  const PipelineGraph& graph = pass(shape);
  const LlamaInputs staged(memory_.staged_inputs, shape);
  for (std::int64_t lane = 0; lane < shape.batch; ++lane) {
    const auto index = static_cast<std::size_t>(lane);
    fill_lane(staged, shape, lane, index < next->lanes.size() ? &next->lanes[index] : nullptr);
    if (index < next->lanes.size()) remember(lane, next->lanes[index]);
  }
  queue_->replay(graph).value();
  queue_->synchronize().value();
  const std::int32_t* const tokens = values(memory_.likeliest);
  likeliest_.assign(tokens, tokens + next->lanes.size());
  std::vector<std::size_t> changed = scheduler_.finish(*next, likeliest_);
  return Step{*std::move(next), std::move(changed)};
}

std::vector<float> LlamaBatch::largest_logits() const {
  std::vector<float> largest(likeliest_.size());
  for (std::size_t lane = 0; lane < largest.size(); ++lane) {
    if (likeliest_[lane] < 0) {  // none is above -infinity
      largest[lane] = std::numeric_limits<float>::quiet_NaN();
      continue;
    }
    const Tensor one =
        memory_.logits.slice(0, static_cast<std::int64_t>(lane), 1).slice(1, likeliest_[lane], 1);
    runtime_.download(one, std::as_writable_bytes(std::span(&largest[lane], 1))).value();
  }
  return largest;
}

std::vector<std::int32_t> LlamaBatch::inputs(const LlamaPassShape& shape) const {
  const std::int32_t* const staged = values(memory_.staged_inputs);
  return {staged, staged + shape.inputs()};
}

void LlamaBatch::set_inputs(std::span<const std::int32_t> inputs) {
  std::copy(inputs.begin(), inputs.end(), values(memory_.staged_inputs));
}

std::uint64_t LlamaBatch::cache_memory() const {
  return cache_bytes(weights_.config, weights_.dtype, options_.pages + 1, options_.page);
}

std::uint64_t LlamaBatch::pass_memory() const {
  std::uint64_t bytes = 0;
  for (const auto& [shape, graph] : passes_) {
    bytes += graph->memory().arena + graph->memory().workspace;
  }
  return bytes;
}

std::map<LlamaPassShape, std::int64_t> count_passes(const LlamaBatchOptions& options,
                                                    std::span<const LlamaRequest> requests) {
  BatchScheduler scheduler(options);
  for (LlamaRequest request : requests) {
    request.ends.clear();
    scheduler.add(std::move(request));
  }
  std::map<LlamaPassShape, std::int64_t> counts;
  while (const auto pass = scheduler.next()) {
    ++counts[pass->shape];
    const std::vector<std::int32_t> tokens(pass->lanes.size());
    static_cast<void>(scheduler.finish(*pass, tokens));
  }
  return counts;
}

}  // namespace greta::runtime
