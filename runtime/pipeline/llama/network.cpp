#include "runtime/pipeline/llama/network.hpp"

#include <fmt/format.h>

#include <cmath>

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
    Tensor x = embed();
    for (layer_ = 0; layer_ < config_.layers; ++layer_) x = feed_forward(attend(x));
    layer_ = -1;
    classify(x);
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

  Tensor norm(const char* what, LlamaStage stage, const Tensor& x, const Tensor& weight) {
    label(what);
    const Tensor y = pipeline_.temporary(weights_.dtype, x.shape());
    NormOptions options;
    options.weight = weight;
    options.epsilon = static_cast<float>(config_.norm_epsilon);
    pipeline_.rmsnorm(x, y, options).value();
    tell(stage, y);
    return y;
  }

  /// Returns x times the transposed weights.
  Tensor product(const char* what, const Tensor& x, const Tensor& weights,
                 const GemmOptions& options = {}) {
    label(what);
    const std::int64_t columns = weights.shape()[0];
    const Tensor y = temporary(options.activation == Activation::swiglu ? columns / 2 : columns);
    GemmOptions transposed = options;
    transposed.layout = Layout::nt;
    pipeline_.gemm(x, weights, y, transposed).value();
    return y;
  }

  /// Returns the options of a product with the norm of its rows.
  GemmOptions normed(const Tensor& weight) const {
    GemmOptions options;
    options.norm_weight = weight;
    options.norm_epsilon = static_cast<float>(config_.norm_epsilon);
    return options;
  }

  /// Returns queries, keys and values of each token.
  Tensor project(const Tensor& x) {
    Tensor all;
    if (shape_.fused()) {
      all = product("attn_norm + qkv", x, layer().qkv, normed(layer().attn_norm));
    } else {
      const Tensor y = norm("attn_norm", LlamaStage::attn_norm, x, layer().attn_norm);
      all = product("qkv", y, layer().qkv);
    }
    tell(LlamaStage::q, all);
    return all;
  }

  RopePairs pairs() const {
    return config_.rope_style == RopeStyle::half ? RopePairs::half : RopePairs::interleaved;
  }

  /// Rotates queries and keys and appends keys and values to the caches. Returns the queries,
  /// [batch, tokens, heads, head_dim].
  Tensor rotate_and_append(const Tensor& all) {
    const std::int64_t q = config_.heads, kv = config_.kv_heads, dim = config_.head_dim;
    const Tensor by_sequence = all.reshape({shape_.batch, shape_.tokens, q + 2 * kv, dim});
    if (shape_.fused()) {
      label("rope + kv_update");
      const auto index = static_cast<std::size_t>(layer_);
      const Tensor queries = temporary(config_.q_dim());
      const Tensor out = queries.reshape({shape_.batch, shape_.tokens, q, dim});
      RopeAppendOptions options;
      options.pairs = pairs();
      pipeline_
          .rope_append(by_sequence.slice(2, 0, q), by_sequence.slice(2, q, kv),
                       by_sequence.slice(2, q + kv, kv), inputs_.positions, memory_.rope_table,
                       inputs_.slot, memory_.keys[index], memory_.values[index], out, options)
          .value();
      tell(LlamaStage::q_rope, queries);
      return out;
    }
    const Tensor heads = all.reshape({shape_.rows(), q + 2 * kv, dim});
    const Tensor rotated = heads.slice(1, 0, q + kv);
    label("rope");
    pipeline_.rope(rotated, inputs_.positions, memory_.rope_table, rotated, pairs()).value();
    tell(LlamaStage::q_rope, all);
    append(heads.slice(1, q, kv), heads.slice(1, q + kv, kv));
    return by_sequence.slice(2, 0, q);
  }

  /// Appends keys and values, [rows, kv_heads, head_dim], to the caches.
  void append(const Tensor& keys, const Tensor& values) {
    const auto index = static_cast<std::size_t>(layer_);
    const Shape cache{config_.kv_heads, memory_.capacity, config_.head_dim};
    label("kv_update");
    for (std::int64_t b = 0; b < shape_.batch; ++b) {
      const auto tokens = [&](const Tensor& x) {
        return x.slice(0, b * shape_.tokens, shape_.tokens);
      };
      pipeline_
          .kv_update(tokens(keys), tokens(values), inputs_.slot.slice(0, b, 1),
                     memory_.keys[index].slice(0, b, 1).reshape(cache),
                     memory_.values[index].slice(0, b, 1).reshape(cache))
          .value();
    }
  }

  /// Records the first half of a layer.
  Tensor attend(const Tensor& x) {
    const Tensor queries = rotate_and_append(project(x));
    label("attention");
    const auto index = static_cast<std::size_t>(layer_);
    const Tensor out = temporary(config_.q_dim());
    const Shape shape{shape_.batch, shape_.tokens, config_.heads, config_.head_dim};
    AttentionOptions options;
    options.causal = shape_.tokens > 1;
    pipeline_
        .attention(queries, memory_.keys[index], memory_.values[index], inputs_.lengths,
                   out.reshape(shape), options)
        .value();
    tell(LlamaStage::attention, out);
    const Tensor sum = product("attn_out", out, layer().wo, {.residual = x});
    tell(LlamaStage::attn_out, sum);
    return sum;
  }

  /// Returns silu(gate) * up of each token.
  Tensor gate(const Tensor& x) {
    Tensor hidden;
    if (shape_.fused()) {
      GemmOptions options = normed(layer().ffn_norm);
      options.activation = Activation::swiglu;
      hidden = product("ffn_norm + gate_up + silu_mul", x, layer().gate_up, options);
    } else {
      const Tensor y = norm("ffn_norm", LlamaStage::ffn_norm, x, layer().ffn_norm);
      const Tensor packed = product("gate_up", y, layer().gate_up);
      tell(LlamaStage::gate, packed);
      label("silu_mul");
      hidden = temporary(config_.hidden_dim);
      pipeline_.silu_mul(packed, hidden).value();
    }
    tell(LlamaStage::silu_mul, hidden);
    return hidden;
  }

  /// Records the second half of a layer.
  Tensor feed_forward(const Tensor& x) {
    const Tensor sum = product("ffn_out", gate(x), layer().down, {.residual = x});
    tell(LlamaStage::ffn_out, sum);
    return sum;
  }

  /// Computes the logits of each sequence's last token.
  void classify(Tensor x) {
    if (shape_.tokens > 1) {
      label("last tokens");
      const Tensor rows = pipeline_.temporary(weights_.dtype, {shape_.batch, config_.dim});
      pipeline_.embedding(inputs_.last, x, rows).value();
      x = rows;
    }
    const Tensor normed = norm("final_norm", LlamaStage::final_norm, x, weights_.final_norm);
    label("head");
    GemmOptions options;
    options.layout = Layout::nt;
    pipeline_.gemm(normed, weights_.head, memory_.logits, options).value();
    tell(LlamaStage::logits, memory_.logits);
    label("argmax");
    pipeline_.argmax(memory_.logits, memory_.likeliest).value();
    label("outputs");
    pipeline_.copy(memory_.staged_likeliest, memory_.likeliest).value();
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

LlamaInputs::LlamaInputs(const Tensor& memory, const LlamaPassShape& shape)
    : all(memory.slice(0, 0, shape.inputs())) {
  std::int64_t first = 0;
  const auto next = [&](std::int64_t count) {
    first += count;
    return all.slice(0, first - count, count);
  };
  ids = next(shape.rows());
  positions = next(shape.rows());
  slot = next(shape.batch);
  lengths = next(shape.batch);
  last = next(shape.batch);
}

std::uint64_t cache_bytes(const LlamaConfig& config, DType dtype, std::int64_t batch,
                          std::int64_t capacity) {
  const double elements = 2 * static_cast<double>(config.layers) * static_cast<double>(batch) *
                          static_cast<double>(capacity) * static_cast<double>(config.kv_dim());
  const double bytes = bytes_of(dtype, elements);
  // Integers up to 2^53 are exact; larger sizes fit no device.
  return bytes < 0x1p63 ? static_cast<std::uint64_t>(bytes) : std::uint64_t{1} << 63U;
}

LlamaMemory make_memory(const LlamaConfig& config, DType dtype, const LlamaOptions& options,
                        const TensorMaker& make) {
  LlamaMemory memory;
  memory.capacity = options.capacity;
  const Shape cache{options.batch, config.kv_heads, options.capacity, config.head_dim};
  for (std::int64_t i = 0; i < config.layers; ++i) {
    memory.keys.push_back(make(dtype, cache, Memory::device));
    memory.values.push_back(make(dtype, cache, Memory::device));
  }
  memory.rope_table = make(DType::f32, {options.capacity, config.head_dim}, Memory::device);
  const std::int64_t inputs = LlamaPassShape{options.batch, options.most_tokens}.inputs();
  memory.inputs = make(DType::i32, {inputs}, Memory::device);
  memory.staged_inputs = make(DType::i32, {inputs}, Memory::staging);
  memory.logits = make(DType::f32, {options.batch, config.vocab}, Memory::device);
  memory.likeliest = make(DType::i32, {options.batch}, Memory::device);
  memory.staged_likeliest = make(DType::i32, {options.batch}, Memory::staging);
  return memory;
}

LlamaMemory allocate_memory(Runtime& runtime, const LlamaConfig& config, DType dtype,
                            const LlamaOptions& options) {
  LlamaMemory memory = make_memory(config, dtype, options, runtime.maker());
  const std::vector<float> table = rope_table(config, options.capacity);
  runtime.upload(memory.rope_table, std::as_bytes(std::span(table))).value();
  return memory;
}

void record_llama(Pipeline& pipeline, const LlamaDeviceWeights& weights, const LlamaMemory& memory,
                  const LlamaPassShape& shape, const LlamaTap& tap) {
  PassRecorder(pipeline, weights, memory, shape, tap).record();
}

}  // namespace greta::runtime
