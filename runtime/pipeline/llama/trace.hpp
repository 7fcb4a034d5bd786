#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::runtime {

/// What a Llama computes, in order. The first is of the whole model, as are the last two; the rest
/// is of every layer.
enum class LlamaStage {
  embedding,   ///< [tokens, dim]
  attn_norm,   ///< [tokens, dim]
  q,           ///< [tokens, heads * head_dim]
  k,           ///< [tokens, kv_heads * head_dim]
  v,           ///< [tokens, kv_heads * head_dim]
  q_rope,      ///< as q
  k_rope,      ///< as k
  k_cache,     ///< [kv_heads * length, head_dim]: the keys of all positions so far, by KV head
  v_cache,     ///< as k_cache
  attention,   ///< [tokens, heads * head_dim]
  attn_out,    ///< [tokens, dim]: the output projection and the layer's input
  ffn_norm,    ///< [tokens, dim]
  gate,        ///< [tokens, hidden_dim]
  up,          ///< [tokens, hidden_dim]
  silu_mul,    ///< [tokens, hidden_dim]
  ffn_out,     ///< [tokens, dim]: the down projection and attn_out; the next layer's input
  final_norm,  ///< [tokens or fewer, dim]: of the last tokens
  logits,      ///< [as final_norm, vocab]
};

std::string_view to_string(LlamaStage stage);  ///< "attn_norm"
/// Those of a layer, attn_norm … ffn_out.
constexpr std::size_t layer_stages = 15;

/// A stage's result, row-major. Values of 32- and 16-bit types are held exactly.
struct TraceMatrix {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<double> values;

  TraceMatrix() = default;
  TraceMatrix(std::int64_t r, std::int64_t c)
      : rows(r), cols(c), values(static_cast<std::size_t>(r * c)) {}
  bool empty() const { return values.empty(); }
  double* row(std::int64_t r) { return values.data() + r * cols; }
  const double* row(std::int64_t r) const { return values.data() + r * cols; }
};

/// A layer's stages.
class LlamaLayerTrace {
 public:
  TraceMatrix& operator[](LlamaStage stage) { return stages_.at(index(stage)); }
  const TraceMatrix& operator[](LlamaStage stage) const { return stages_.at(index(stage)); }

 private:
  static std::size_t index(LlamaStage stage) {
    return static_cast<std::size_t>(stage) - static_cast<std::size_t>(LlamaStage::attn_norm);
  }
  std::array<TraceMatrix, layer_stages> stages_;
};

/// One pass of some tokens of a sequence through a model.
struct LlamaTrace {
  std::int64_t first = 0;  ///< position of ids[0]
  std::vector<std::int32_t> ids;
  TraceMatrix embedding;
  std::vector<LlamaLayerTrace> layers;
  TraceMatrix final_norm;
  TraceMatrix logits;
};

}  // namespace greta::runtime
