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

  /// Returns x times the transposed weights, plus `residual` if set.
  Tensor product(const char* what, const Tensor& x, const Tensor& weights,
                 const Tensor& residual = {}) {
    label(what);
    const Tensor y = temporary(weights.shape()[0]);
    GemmOptions options;
    options.layout = Layout::nt;
    options.residual = residual;
    pipeline_.gemm(x, weights, y, options).value();
    return y;
  }

  /// Columns of the qkv product, by heads.
  struct Projected {
    Tensor q;     ///< [batch, tokens, heads, head_dim]
    Tensor k, v;  ///< [rows, kv_heads, head_dim]
  };

  /// Computes queries, keys and values; queries and keys are rotated.
  Projected project(const Tensor& x) {
    const std::int64_t q = config_.heads, kv = config_.kv_heads, dim = config_.head_dim;
    const Tensor all = product("qkv", x, layer().qkv);
    tell(LlamaStage::q, all);
    const Tensor heads = all.reshape({shape_.rows(), q + 2 * kv, dim});
    const Tensor rotated = heads.slice(1, 0, q + kv);
    const auto pairs =
        config_.rope_style == RopeStyle::half ? RopePairs::half : RopePairs::interleaved;
    label("rope");
    pipeline_.rope(rotated, inputs_.positions, memory_.rope_table, rotated, pairs).value();
    tell(LlamaStage::q_rope, all);
    const Tensor by_sequence = all.reshape({shape_.batch, shape_.tokens, q + 2 * kv, dim});
    return {by_sequence.slice(2, 0, q), heads.slice(1, q, kv), heads.slice(1, q + kv, kv)};
  }

  void append(const Projected& all) {
    const auto index = static_cast<std::size_t>(layer_);
    const Shape cache{config_.kv_heads, memory_.capacity, config_.head_dim};
    label("kv_update");
    for (std::int64_t b = 0; b < shape_.batch; ++b) {
      const auto tokens = [&](const Tensor& x) {
        return x.slice(0, b * shape_.tokens, shape_.tokens);
      };
      pipeline_
          .kv_update(tokens(all.k), tokens(all.v), inputs_.slot.slice(0, b, 1),
                     memory_.keys[index].slice(0, b, 1).reshape(cache),
                     memory_.values[index].slice(0, b, 1).reshape(cache))
          .value();
    }
  }

  /// Records the first half of a layer.
  Tensor attend(const Tensor& x) {
    const Tensor normed = norm("attn_norm", LlamaStage::attn_norm, x, layer().attn_norm);
    const Projected all = project(normed);
    append(all);
    label("attention");
    const auto index = static_cast<std::size_t>(layer_);
    const Tensor out = temporary(config_.q_dim());
    const Shape shape{shape_.batch, shape_.tokens, config_.heads, config_.head_dim};
    AttentionOptions options;
    options.causal = shape_.tokens > 1;
    pipeline_
        .attention(all.q, memory_.keys[index], memory_.values[index], inputs_.lengths,
                   out.reshape(shape), options)
        .value();
    tell(LlamaStage::attention, out);
    const Tensor sum = product("attn_out", out, layer().wo, x);
    tell(LlamaStage::attn_out, sum);
    return sum;
  }

  /// Records the second half of a layer.
  Tensor feed_forward(const Tensor& x) {
    const Tensor normed = norm("ffn_norm", LlamaStage::ffn_norm, x, layer().ffn_norm);
    const Tensor packed = product("gate_up", normed, layer().gate_up);
    tell(LlamaStage::gate, packed);
    label("silu_mul");
    const Tensor hidden = temporary(config_.hidden_dim);
    pipeline_.silu_mul(packed, hidden).value();
    tell(LlamaStage::silu_mul, hidden);
    const Tensor sum = product("ffn_out", hidden, layer().down, x);
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
