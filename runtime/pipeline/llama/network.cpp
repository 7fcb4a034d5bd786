#include "runtime/pipeline/llama/network.hpp"

#include <fmt/format.h>

#include <cmath>
#include <initializer_list>
#include <optional>

#include "runtime/pipeline/compute/chains.hpp"
#include "runtime/pipeline/compute/experts.hpp"

namespace greta::runtime {
namespace {

/// Records one pass through the network, in the order of its operations.
class PassRecorder {
 public:
  PassRecorder(Pipeline& pipeline, const LlamaDeviceWeights& weights, const LlamaMemory& memory,
               const LlamaPassShape& shape, const LlamaTap& tap)
      : pipeline_(pipeline),
        weights_(weights),
        config_(weights.config),
        memory_(memory),
        shape_(shape),
        inputs_(memory.inputs, shape),
        tap_(tap) {}

  void record() {
    Hidden x{embed(), {}};
    for (layer_ = 0; layer_ < config_.layers; ++layer_) x = feed_forward(attend(x));
    layer_ = -1;
    classify(x.sum);
  }

 private:
  const LlamaDeviceLayer& layer() const {
    return weights_.layers[static_cast<std::size_t>(layer_)];
  }

  void label(const char* what) {
    pipeline_.label(layer_ < 0 ? std::string(what) : fmt::format("layer {} {}", layer_, what));
  }
  Tensor temporary(std::int64_t cols) {
    return pipeline_.temporary(weights_.dtype, {shape_.rows(), cols});
  }
  void tell(LlamaStage stage, const Tensor& result) {
    if (tap_) tap_(layer_, stage, result);
  }

  Tensor embed() {
    label("inputs");
    pipeline_.copy(inputs_.all, LlamaInputs(memory_.staged_inputs, shape_).all).value();
    label("embedding");
    const Tensor x = temporary(config_.dim);
    pipeline_.embedding(inputs_.ids, weights_.embedding, x).value();
    tell(LlamaStage::embedding, x);
    return x;
  }

  /// Returns what the labels of a chain's operations begin with.
  std::string prefix() const { return fmt::format("layer {} ", layer_); }
  ChainNorm norm_of(const char* name, const Tensor& weight, const ChainRows& result = {}) const {
    return {weight, static_cast<float>(config_.norm_epsilon), result, name};
  }
  NormOptions options_of(const Tensor& weight) const {
    NormOptions options;
    options.weight = weight;
    options.epsilon = static_cast<float>(config_.norm_epsilon);
    return options;
  }
  void tell_if(LlamaStage stage, const Tensor& result) {
    if (result) tell(stage, result);
  }

  /// A layer's input, or its sum of the first half, and its norm if that is computed already.
  struct Hidden {
    Tensor sum;
    ChainRows normed;
  };

  Qkv qkv_of(const LlamaDeviceLayer& layer, const Hidden& x) const {
    return {x.sum,          norm_of("attn_norm", layer.attn_norm, x.normed),
            layer.qkv,      config_.q_dim(),
            layer.qkv_bias, memory_.zeros,
            prefix()};
  }
  GateUp gate_up_of(const LlamaDeviceLayer& layer, const Hidden& x) const {
    return {x.sum,
            norm_of("ffn_norm", layer.ffn_norm, x.normed),
            layer.gate_up,
            prefix(),
            layer.down.scaled(),
            layer.gate_up_bias,
            memory_.zeros};
  }
  bool has_experts() const { return config_.has_experts(layer_); }

  /// The norm that follows a sum.
  struct Following {
    ChainNorm norm;
    std::optional<ScaledInput> input;  ///< of the products with the norm, if they are scaled
    bool apart = false;                ///< whether the chain that begins with the norm has it apart
  };
  /// Returns that of the next layer, if there is one.
  Following following(const Tensor& sum) {
    if (layer_ + 1 >= config_.layers) return {};
    const LlamaDeviceLayer& next = weights_.layers[static_cast<std::size_t>(layer_ + 1)];
    return {norm_of("attn_norm", next.attn_norm), next.qkv.scaled(),
            has_norm_apart(pipeline_, chain_of(qkv_of(next, {sum, {}})))};
  }

  /// Reports a matrix with its first stage, or each part with its own.
  void tell_parts(std::initializer_list<LlamaStage> stages, const ProjectedParts& results) {
    if (results.all) return tell(*stages.begin(), results.all);
    std::size_t part = 0;
    for (const LlamaStage stage : stages) tell(stage, results.parts[part++]);
  }

  /// Returns queries, keys and values of each token.
  ProjectedParts project(const Hidden& x) {
    const QkvResults results = runtime::record(pipeline_, qkv_of(layer(), x));
    if (!x.normed) tell_if(LlamaStage::attn_norm, results.normed);
    tell_parts({LlamaStage::q, LlamaStage::k, LlamaStage::v}, results.out);
    return results.out;
  }

  /// Returns rows as [batch, tokens, heads, head_dim].
  Tensor by_heads(const Tensor& rows) const {
    return rows.reshape(
        {shape_.batch, shape_.tokens, rows.shape()[1] / config_.head_dim, config_.head_dim});
  }

  /// Rotates queries and keys and appends keys and values to the caches. Returns the queries,
  /// [batch, tokens, heads, head_dim].
  Tensor rotate_and_append(const ProjectedParts& qkv) {
    const auto index = static_cast<std::size_t>(layer_);
    RopeKv chain;
    chain.heads = by_heads(qkv.all ? qkv.all : qkv.parts[0]);
    if (!qkv.all) {
      chain.apart_k = by_heads(qkv.parts[1]);
      chain.apart_v = by_heads(qkv.parts[2]);
    }
    chain.queries = config_.heads;
    chain.positions = inputs_.positions;
    chain.table = memory_.rope_table;
    chain.slots = inputs_.slot;
    chain.block_table = inputs_.block_table;
    chain.keys = memory_.keys[index];
    chain.values = memory_.values[index];
    chain.pairs = config_.rope_style == RopeStyle::half ? RopePairs::half : RopePairs::interleaved;
    chain.q_norm = layer().q_norm;
    chain.k_norm = layer().k_norm;
    chain.epsilon = static_cast<float>(config_.norm_epsilon);
    chain.prefix = prefix();
    const RopeKvResults results = runtime::record(pipeline_, chain);
    if (!results.in_place) {
      tell(LlamaStage::q_rope, results.queries.reshape({shape_.rows(), config_.q_dim()}));
    } else {
      tell_parts({LlamaStage::q_rope, LlamaStage::k_rope}, qkv);
    }
    return results.queries;
  }

  /// Returns a projection's sum with the residual, and the norm that follows where the chosen
  /// alternative computes it with the sum.
  Hidden project_and_add(const char* name, LlamaStage stage, const ChainRows& x,
                         const WeightMatrix& weights, const Tensor& residual, const Following& next,
                         const Tensor& bias) {
    const ResidualNorm chain{x,        weights,    residual, next.norm,    name,
                             prefix(), next.input, bias,     memory_.zeros};
    const ResidualNormResults results = runtime::record(pipeline_, chain, next.apart);
    tell(stage, results.sum);
    return {results.sum, results.normed};
  }

  /// Records the first half of a layer.
  Hidden attend(const Hidden& x) {
    const Tensor queries = rotate_and_append(project(x));
    label("attention");
    const auto index = static_cast<std::size_t>(layer_);
    const Tensor out = temporary(config_.q_dim());
    const Shape shape{shape_.batch, shape_.tokens, config_.heads, config_.head_dim};
    AttentionOptions options;
    options.causal = shape_.tokens > 1;
    options.block_table = inputs_.block_table;
    options.ragged = shape_.pages > 0;  // sequences that share pages have lengths of their own
    pipeline_
        .attention(queries, memory_.keys[index], memory_.values[index], inputs_.lengths,
                   out.reshape(shape), options)
        .value();
    tell(LlamaStage::attention, out);
    const bool apart =
        has_experts() || has_norm_apart(pipeline_, chain_of(gate_up_of(layer(), {x.sum, {}})));
    const Following next{norm_of("ffn_norm", layer().ffn_norm),
                         has_experts() ? std::nullopt : layer().gate_up.scaled(), apart};
    const Hidden sum = project_and_add("attn_out", LlamaStage::attn_out, {out}, layer().wo, x.sum,
                                       next, layer().out_bias);
    tell_if(LlamaStage::ffn_norm, sum.normed.numbers);
    return sum;
  }

  /// Records silu(gate) * up of the network that all tokens have.
  ChainRows gate_rows(const GateUp& chain, bool norm_told) {
    const GateUpResults gated = runtime::record(pipeline_, chain);
    if (!norm_told) tell_if(LlamaStage::ffn_norm, gated.normed);
    if (!gated.products.parts.empty()) {
      tell_parts({LlamaStage::gate, LlamaStage::up}, gated.products);
    }
    tell_if(LlamaStage::silu_mul, gated.out.numbers);
    return gated.out;
  }

  /// Records the second half of a layer, and the norm of the next one where it is computed with the
  /// sum.
  Hidden feed_forward(const Hidden& x) {
    Hidden sum;
    if (has_experts()) {
      sum = mix_experts(x);
    } else {
      const ChainRows gated = gate_rows(gate_up_of(layer(), x), static_cast<bool>(x.normed));
      sum = project_and_add("ffn_out", LlamaStage::ffn_out, gated, layer().down, x.sum,
                            following(x.sum), layer().down_bias);
    }
    if (sum.normed.numbers && tap_) tap_(layer_ + 1, LlamaStage::attn_norm, sum.normed.numbers);
    return sum;
  }

  /// Returns the sum of a layer's first half and of its experts.
  Hidden mix_experts(const Hidden& x) {
    const Tensor normed = x.normed.numbers ? x.normed.numbers : norm_for_experts(x.sum);
    const LlamaExperts& experts = config_.experts;
    const ExpertsResults routed = runtime::record(
        pipeline_, Experts{normed, layer().router, layer().expert_gate_up, layer().expert_down,
                           experts.top_k, experts.renormalise, prefix()});
    tell_experts(routed);
    const Tensor base = layer().shared_router ? add_shared_expert(x.sum, normed) : x.sum;
    const Following next = following(x.sum);
    Hidden sum{pipeline_.temporary(weights_.dtype, x.sum.shape()), {}};
    if (next.apart) {
      label("residual + attn_norm");
      sum.normed.numbers = pipeline_.temporary(weights_.dtype, x.sum.shape());
      pipeline_
          .add_rmsnorm(routed.out, base, sum.sum, sum.normed.numbers, options_of(next.norm.weight))
          .value();
    } else {
      label("residual");
      pipeline_.add(routed.out, base, sum.sum).value();
    }
    tell(LlamaStage::ffn_out, sum.sum);
    return sum;
  }

  Tensor norm_for_experts(const Tensor& x) {
    label("ffn_norm");
    const Tensor normed = pipeline_.temporary(weights_.dtype, x.shape());
    pipeline_.rmsnorm(x, normed, options_of(layer().ffn_norm)).value();
    tell(LlamaStage::ffn_norm, normed);
    return normed;
  }

  void tell_experts(const ExpertsResults& results) {
    using enum LlamaStage;
    tell(router, results.logits);
    tell(experts, results.ids);
    tell(expert_weights, results.weights);
    tell_if(expert_places, results.places);
    tell_if(expert_rows, results.rows);
    tell_if(expert_gate, results.gate_up);
    tell_if(expert_silu_mul, results.gated);
    tell_if(expert_out, results.down);
    tell(expert_sum, results.out);
  }

  /// Returns the sum of x and of the shared expert.
  Tensor add_shared_expert(const Tensor& x, const Tensor& normed) {
    GateUp chain = gate_up_of(layer(), {x, {normed}});
    chain.norm.kept = true;
    chain.quantised_to.reset();
    chain.prefix += "shared ";
    const Tensor gated = gate_rows(chain, true).numbers;
    const RowGateResults scaled = runtime::record(
        pipeline_, RowGate{normed, layer().shared_router, gated, memory_.numbers, prefix()});
    tell(LlamaStage::shared_router, scaled.logits);
    tell(LlamaStage::shared_weight, scaled.weights);
    tell(LlamaStage::shared_scaled, scaled.out);
    return project_and_add("shared_out", LlamaStage::shared_out, {scaled.out}, layer().down, x, {},
                           {})
        .sum;
  }

  /// Computes the logits of each sequence's last token.
  void classify(Tensor x) {
    if (shape_.tokens > 1) {
      label("last tokens");
      const Tensor last = pipeline_.temporary(weights_.dtype, {shape_.batch, config_.dim});
      pipeline_.embedding(inputs_.last, x, last).value();
      x = last;
    }
    label("final_norm");
    const Tensor normed = pipeline_.temporary(weights_.dtype, x.shape());
    pipeline_.rmsnorm(x, normed, options_of(weights_.final_norm)).value();
    tell(LlamaStage::final_norm, normed);
    label("head");
    const auto rows = [&](const Tensor& all) { return all.slice(0, 0, shape_.batch); };
    const Tensor logits = rows(memory_.logits), likeliest = rows(memory_.likeliest);
    multiply(pipeline_, normed, weights_.head, logits).value();
    tell(LlamaStage::logits, logits);
    if (memory_.settings) {
      label("sample");
      SampleOptions options;
      if (memory_.penalties) options = {rows(memory_.penalties), rows(memory_.history)};
      pipeline_.sample(logits, rows(memory_.settings), inputs_.seeds, likeliest, options).value();
    } else {
      label("argmax");
      pipeline_.argmax(logits, likeliest).value();
    }
  }

  Pipeline& pipeline_;
  const LlamaDeviceWeights& weights_;
  const LlamaConfig& config_;
  const LlamaMemory& memory_;
  LlamaPassShape shape_;
  LlamaInputs inputs_;
  const LlamaTap& tap_;
  std::int64_t layer_ = -1;  ///< the layer that is recorded
};

}  // namespace

void record_llama(Pipeline& pipeline, const LlamaDeviceWeights& weights, const LlamaMemory& memory,
                  const LlamaPassShape& shape, const LlamaTap& tap) {
  PassRecorder(pipeline, weights, memory, shape, tap).record();
}

PipelineOptions pass_options(const LlamaPassShape& shape, bool graph) {
  constexpr std::int64_t most_overlapping = 64;
  PipelineOptions options;
  options.graph = graph;
  options.overlap = shape.rows() <= most_overlapping;
  return options;
}

}  // namespace greta::runtime
