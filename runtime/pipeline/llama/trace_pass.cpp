#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "kernels/chains/chains.hpp"
#include "runtime/pipeline/llama/runner.hpp"

/// A pass that keeps the results of all stages.
namespace greta::runtime {
namespace {

/// Returns the first rows of a tensor, at most `most`.
TraceMatrix matrix(Runtime& runtime, const Tensor& tensor, std::int64_t most) {
  std::vector<std::byte> bytes(tensor.bytes());
  runtime.download(tensor, bytes).value();
  const std::int64_t cols = tensor.shape().last();
  TraceMatrix all(std::min(most, tensor.shape().elements() / cols), cols);
  for (std::size_t i = 0; i < all.values.size(); ++i) {
    all.values[i] = load_element(tensor.dtype(), bytes.data(), i);
  }
  return all;
}

/// Returns columns [first, first + count).
TraceMatrix columns(const TraceMatrix& from, std::int64_t first, std::int64_t count) {
  TraceMatrix part(from.rows, count);
  for (std::int64_t row = 0; row < from.rows; ++row) {
    std::copy_n(from.row(row) + first, count, part.row(row));
  }
  return part;
}

/// Returns the stages in a result, as LlamaTap combines them, with their numbers of columns.
std::vector<std::pair<LlamaStage, std::int64_t>> parts_of(LlamaStage stage, std::int64_t cols,
                                                          const LlamaConfig& config,
                                                          std::int64_t layer) {
  const std::int64_t q = config.q_dim(), kv = config.kv_dim();
  switch (stage) {
    case LlamaStage::q:
      if (cols == q) return {{LlamaStage::q, q}};
      return {{LlamaStage::q, q}, {LlamaStage::k, kv}, {LlamaStage::v, kv}};
    case LlamaStage::q_rope:
      if (cols == q) return {{LlamaStage::q_rope, q}};
      return {{LlamaStage::q_rope, q}, {LlamaStage::k_rope, kv}};
    case LlamaStage::gate:
      if (cols == config.ffn_dim(layer)) return {{LlamaStage::gate, cols}};
      return {{LlamaStage::gate, cols / 2}, {LlamaStage::up, cols / 2}};
    case LlamaStage::expert_gate:
      return {{LlamaStage::expert_gate, cols / 2}, {LlamaStage::expert_up, cols / 2}};
    default:
      return {{stage, cols}};
  }
}

/// Returns whether rows are in the order of a device's experts.
bool by_expert(LlamaStage stage) {
  using enum LlamaStage;
  return stage == expert_rows || stage == expert_gate || stage == expert_silu_mul ||
         stage == expert_out;
}

/// Returns the rows at places, one after the other. Those at places that there aren't are NaN.
TraceMatrix rows_at(const TraceMatrix& from, const TraceMatrix& places) {
  TraceMatrix rows(places.rows * places.cols, from.cols);
  std::fill(rows.values.begin(), rows.values.end(), std::numeric_limits<double>::quiet_NaN());
  for (std::int64_t i = 0; i < rows.rows; ++i) {
    const auto place = static_cast<std::int64_t>(places.values[static_cast<std::size_t>(i)]);
    if (place < 0 || place >= from.rows) continue;
    std::copy_n(from.row(place), from.cols, rows.row(i));
  }
  return rows;
}

/// Copies of the stages' results, which later steps of the pass overwrite.
struct Copies {
  struct Copy {
    std::int64_t layer;
    LlamaStage stage;
    Tensor tensor;
  };
  std::vector<Copy> all;

  LlamaTap tap(Runtime& runtime, Pipeline& pipeline) {
    return [this, &runtime, &pipeline](std::int64_t layer, LlamaStage stage, const Tensor& result) {
      const Tensor kept = runtime.allocate(result.dtype(), result.shape()).value();
      pipeline.copy(kept, result).value();
      all.push_back({layer, stage, kept});
    };
  }

  void put(Runtime& runtime, const LlamaConfig& config, LlamaTrace& trace) const {
    const auto tokens = static_cast<std::int64_t>(trace.ids.size());
    TraceMatrix places;  // of the layer
    for (const auto& [layer, stage, tensor] : all) {
      const bool gathered = by_expert(stage);
      TraceMatrix result =
          matrix(runtime, tensor, gathered ? std::numeric_limits<std::int64_t>::max() : tokens);
      if (gathered) result = rows_at(result, places);
      if (stage == LlamaStage::expert_places) {
        places = std::move(result);
        continue;
      }
      if (layer < 0) {
        (stage == LlamaStage::embedding    ? trace.embedding
         : stage == LlamaStage::final_norm ? trace.final_norm
                                           : trace.logits) = std::move(result);
        continue;
      }
      LlamaLayerTrace& to = trace.layers[static_cast<std::size_t>(layer)];
      std::int64_t first = 0;
      for (const auto& [part, width] : parts_of(stage, result.cols, config, layer)) {
        to[part] = columns(result, first, width);
        first += width;
      }
    }
  }
};

/// Returns whether a layer's experts are quantised, and the alternative that was chosen for them
/// decodes them.
bool decodes_experts(const std::vector<ChosenChain>& chains, const LlamaDeviceLayer& layer) {
  for (const auto& [chain, answer, instead] : chains) {
    const bool decodes = answer.config.variant == "gated" || answer.config.variant == "parts";
    if (chain.op != "expert_ffn" || !decodes || !layer.expert_gate_up.quantised()) continue;
    const Problem of_layer = kernels::expert_ffn_chain(
        chain.dtype, {chain.dim("rows"), chain.dim("experts"), chain.dim("top_k"), chain.dim("dim"),
                      chain.dim("hidden"), layer.expert_gate_up.format, layer.expert_down.format});
    if (of_layer == chain) return true;
  }
  return false;
}

}  // namespace

/// Returns the tokens so far in a sequence's cache: [kv_heads * length, head_dim].
TraceMatrix LlamaRunner::cached(const Tensor& cache) const {
  const std::int64_t heads = weights_.config.kv_heads;
  const TraceMatrix all = matrix(runtime_, cache, heads * memory_.capacity);
  TraceMatrix used(heads * position_, all.cols);
  for (std::int64_t head = 0; head < heads; ++head) {
    std::copy_n(all.row(head * memory_.capacity), position_ * all.cols, used.row(head * position_));
  }
  return used;
}

LlamaTrace LlamaRunner::trace(std::span<const std::int32_t> ids) {
  if (options_.batch != 1) {
    throw Error(Failure{Status::invalid_argument,
                        fmt::format("a trace is of one sequence, not of {}", options_.batch),
                        {}});
  }
  check_ids(ids);
  const auto count = static_cast<std::int64_t>(ids.size());
  const LlamaPassShape shape{1, passes(count).front()};
  if (count > shape.tokens) {
    throw Error(
        Failure{Status::invalid_argument,
                fmt::format("a trace of {} tokens: the next pass takes {}", count, shape.tokens),
                {}});
  }
  traced_tokens_ = shape.tokens;
  LlamaTrace trace;
  trace.first = position_;
  trace.ids.assign(ids.begin(), ids.end());
  trace.layers.resize(weights_.layers.size());
  Pipeline pipeline(runtime_);
  Copies copies;
  record_llama(pipeline, weights_, memory_, shape, copies.tap(runtime_, pipeline));
  for (const auto& [chain, answer, instead] : pipeline.chains()) {
    if (chain.op != "residual_norm" || answer.config.variant != "add_norm") continue;
    // Both projections of a layer are the same chain where they have as many elements.
    const std::int64_t inner = chain.dim("inner");
    for (std::size_t i = 0; i < trace.layers.size(); ++i) {
      auto& unrounded = trace.layers[i].unrounded;
      if (inner == config().q_dim()) unrounded.insert(LlamaStage::ffn_norm);
      if (inner == config().hidden_dim && i > 0) unrounded.insert(LlamaStage::attn_norm);
    }
  }
  for (std::size_t i = 0; i < trace.layers.size(); ++i) {
    trace.layers[i].decoded_experts = decodes_experts(pipeline.chains(), weights_.layers[i]);
    // Products have all rows of the pass, padding included.
    trace.layers[i].rounded_weights = pipeline.rounds_weights(dtype(), shape.tokens);
  }
  for (std::size_t i = 1; i < trace.layers.size(); ++i) {
    // The sum with the experts has the next layer's norm in its launch, where it is apart.
    if (config().has_experts(static_cast<std::int64_t>(i) - 1)) {
      trace.layers[i].unrounded.insert(LlamaStage::attn_norm);
    }
  }
  const auto graph = pipeline.finish().value();
  run_pass(*graph, ids, count, shape, count);
  copies.put(runtime_, weights_.config, trace);
  for (std::size_t i = 0; i < trace.layers.size(); ++i) {
    trace.layers[i][LlamaStage::k_cache] = cached(memory_.keys[i]);
    trace.layers[i][LlamaStage::v_cache] = cached(memory_.values[i]);
  }
  return trace;
}

}  // namespace greta::runtime
